package meeting_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/out/calendar"
	"stoa/node/out/calendar/calendartest"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A gate passes requests to a calendar server, and notes those that change something there. While status
// is not 0 it answers with that instead.
type gate struct {
	*httputil.ReverseProxy
	mu      sync.Mutex
	changes []string
	asked   int
	status  int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.asked++
	if r.Method == http.MethodPut || r.Method == http.MethodDelete || r.Method == "MKCALENDAR" {
		g.changes = append(g.changes, r.Method)
	}
	status := g.status
	g.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	g.ReverseProxy.ServeHTTP(w, r)
}

func (g *gate) answers(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = status
}

// A diary is a calendar server that asha's profile may be connected to.
type diary struct {
	*gate
	real, url string // addresses of the server, and of the gate before it
}

// keep starts a calendar server, and gives a world what is needed to use it.
func (w *world) keep() *diary {
	w.t.Helper()
	real := calendartest.Radicale(w.t)
	u := must.Get(url.Parse(real))(w.t)
	g := &gate{ReverseProxy: httputil.NewSingleHostReverseProxy(u)}
	s := httptest.NewServer(g)
	w.t.Cleanup(s.Close)
	w.calendars()
	return &diary{g, real, s.URL}
}

// calendars gives a world what is needed to use a calendar server on this machine.
func (w *world) calendars() {
	w.t.Helper()
	w.Seal = must.Get(key.NewSealer(make([]byte, 32)))(w.t)
	w.Private = true
	w.CalendarClient = outbound.New(outbound.Options{AllowPrivate: true, Timeout: calendar.Timeout, MaxBody: calendar.MaxBody})
}

func (d *diary) events(t *testing.T, collection string) []string {
	t.Helper()
	all := []string{}
	for _, o := range calendartest.Objects(t, d.real, collection) {
		all = append(all, o)
	}
	return all
}

func login(address string) protocol.CalendarLogin {
	return protocol.CalendarLogin{Owned: protocol.Owned{Handle: "asha"}, Address: address, User: calendartest.User, Password: calendartest.Password}
}

// connect connects asha to a server, and returns the account once the server was asked.
func (w *world) connect(address string) protocol.CalendarAccount {
	w.t.Helper()
	a := must.Get(does(w, w.ConnectCalendar, owner("asha"), login(address)))(w.t)
	require.True(w.t, a.Checking)
	w.runJobs()
	return w.account(a.ID)
}

func (w *world) account(id string) protocol.CalendarAccount {
	w.t.Helper()
	return must.Get(does(w, w.GetCalendar, owner("asha"), protocol.CalendarRef{ID: id}))(w.t)
}

func (w *world) own(r protocol.MeetingReceipt) protocol.OwnMeeting {
	w.t.Helper()
	return must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t)
}

// TestCalendar_Life is the life of a meeting as the calendar server sees it: nothing before the approval,
// then one event, which moves and goes. Every job dies once between its effect and its commit.
func TestCalendar_Life(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			each(t, true, func(w *world) {
				d := w.keep()
				w.dies = dies
				a := w.connect(d.url)
				require.Equal(w.t, []any{false, d.url + calendartest.Collection, d.url + calendartest.Collection}, []any{a.Checking, a.Reads[0], *a.Writes})
				require.Nil(w.t, a.LastError)
				require.Equal(w.t, "Work 🗓", a.Calendars[0].Name)

				at := start.Add(24 * time.Hour)
				r := w.asked(1, at)
				w.runJobs()
				require.NoError(w.t, w.use(linkIn(w.sent[len(w.sent)-1].Text), protocol.MeetingLinkConfirm))
				other := w.asked(2, at.Add(2*time.Hour))
				w.runJobs()
				require.NoError(w.t, w.use(linkIn(w.sent[len(w.sent)-1].Text), protocol.MeetingLinkConfirm))
				require.NoError(w.t, moves["decline"](w, other))
				w.pass(time.Hour)
				w.runJobs()
				require.Empty(w.t, d.changes, "nothing is put on a calendar before the person approves")
				require.Empty(w.t, d.events(w.t, calendartest.Collection))
				require.Equal(w.t, protocol.CalendarNone, w.own(r).Calendar.State)

				require.NoError(w.t, moves["approve"](w, r))
				require.Equal(w.t, protocol.CalendarPending, w.own(r).Calendar.State)
				w.runJobs()
				got := d.events(w.t, calendartest.Collection)
				require.Len(w.t, got, 1)
				for _, line := range []string{
					"UID:" + r.Request.ID + "@node.example", "SEQUENCE:0", "DTSTART:" + at.Format("20060102T150405Z"), "SUMMARY:Meeting with Ravi",
				} {
					require.Contains(w.t, got[0], line+"\r\n")
				}
				require.NotContains(w.t, got[0], "ATTENDEE")
				view := w.own(r).Calendar
				require.Equal(w.t, []any{protocol.CalendarWritten, "Work 🗓"}, []any{view.State, *view.Calendar})
				require.Empty(w.t, w.own(r).Warnings, "its own event is not busy time")

				moved := must.Get(does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: at.Add(4 * time.Hour).Format(time.RFC3339)}))(w.t)
				require.Equal(w.t, 1, moved.Sequence)
				w.runJobs()
				got = d.events(w.t, calendartest.Collection)
				require.Len(w.t, got, 1)
				require.Contains(w.t, got[0], "UID:"+r.Request.ID+"@node.example\r\n")
				require.Contains(w.t, got[0], "SEQUENCE:1\r\n")
				require.Contains(w.t, got[0], "DTSTART:"+at.Add(4*time.Hour).Format("20060102T150405Z")+"\r\n")

				must.Get(does(w, w.Cancel, protocol.Caller{}, input(r)))(w.t)
				w.runJobs()
				require.Empty(w.t, d.events(w.t, calendartest.Collection))
				require.Equal(w.t, protocol.CalendarRemoved, w.own(r).Calendar.State)
			})
		})
	}
}

// TestCalendar_Overtaken: a meeting that is cancelled before its event is written has none, and one that is
// moved twice meanwhile has the last time.
func TestCalendar_Overtaken(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		d := w.keep()
		w.connect(d.url)
		gone, kept := w.asked(1, start.Add(24*time.Hour)), w.asked(2, start.Add(30*time.Hour))
		d.answers(503)
		require.NoError(w.t, moves["approve"](w, gone))
		require.NoError(w.t, moves["approve"](w, kept))
		w.runJobs()
		view := w.own(gone).Calendar
		require.Equal(w.t, protocol.CalendarPending, view.State)
		require.Contains(w.t, *view.Reason, "tries again")
		require.NoError(w.t, moves["cancel"](w, gone))
		for i := range 2 {
			at := start.Add(time.Duration(32+i) * time.Hour)
			must.Get(does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(kept), StartsAt: at.Format(time.RFC3339)}))(w.t)
			w.runJobs()
		}
		d.answers(0)
		w.pass(time.Hour)
		w.runJobs()
		got := d.events(w.t, calendartest.Collection)
		require.Len(w.t, got, 1)
		require.Contains(w.t, got[0], "SEQUENCE:2\r\n")
		require.Contains(w.t, got[0], "DTSTART:"+start.Add(33*time.Hour).Format("20060102T150405Z"))
		require.Equal(w.t, protocol.CalendarRemoved, w.own(gone).Calendar.State)
		require.Equal(w.t, protocol.CalendarWritten, w.own(kept).Calendar.State)
	})
}

// TestCalendar_Busy: busy times are no open times and warn, once they are read; they are read again after
// five minutes, kept for a day when the server does not answer, and marked.
func TestCalendar_Busy(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		d := w.keep()
		rules := always()
		rules.ShowSlots = true
		w.settings("asha", rules)
		at := start.Add(24 * time.Hour)
		info := func() protocol.MeetingInfo {
			w.t.Helper()
			q := protocol.MeetingQuery{Handle: "asha", From: at.Format(time.RFC3339), To: at.Add(2 * time.Hour).Format(time.RFC3339)}
			return must.Get(does(w, w.Info, protocol.Caller{}, q))(w.t)
		}
		require.Len(w.t, info().Slots, 4)
		event := func(uid string, at time.Time) string {
			return fmt.Sprintf("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:%s\r\nDTSTAMP:20261101T000000Z\r\nSUMMARY:Private\r\n"+
				"DTSTART:%s\r\nDURATION:PT30M\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n", uid, at.Format("20060102T150405Z"))
		}
		require.Equal(w.t, 201, calendartest.Put(w.t, d.real, calendartest.Collection+"a.ics", event("a", at)))
		a := w.connect(d.url)
		require.NotNil(w.t, a.BusyReadAt)
		require.Len(w.t, info().Slots, 3)
		require.False(w.t, info().BusyStale)
		r := w.asked(1, at)
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOverlapsBusy}, w.own(r).Warnings)

		asked := d.asked
		w.pass(protocol.BusyFor - time.Second)
		w.runJobs()
		require.Equal(w.t, asked, d.asked, "nothing is asked within five minutes")
		w.pass(time.Second)
		w.runJobs()
		require.Equal(w.t, asked+1, d.asked, "the tag of the calendar is the same")
		require.Equal(w.t, 201, calendartest.Put(w.t, d.real, calendartest.Collection+"b.ics", event("b", at.Add(time.Hour))))
		w.pass(protocol.BusyFor)
		w.runJobs()
		require.Len(w.t, info().Slots, 2)

		approved, err := does(w, w.Approve, owner("asha"), decision(r))
		require.NoError(w.t, err, "busy time warns and refuses nothing")
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOverlapsBusy}, approved.Warnings)

		d.answers(503)
		for range 10 {
			w.pass(2 * time.Hour)
			w.runJobs()
		}
		require.True(w.t, info().BusyStale)
		require.Len(w.t, info().Slots, 2, "the last known are used")
		require.Contains(w.t, *w.account(a.ID).LastError, "cannot answer")
		require.True(w.t, must.Get(does(w, w.Calendars, owner("asha"), protocol.OwnInput{}))(w.t).BusyStale)
		at = at.Add(24 * time.Hour)
		d.answers(0)
		require.Equal(w.t, 201, calendartest.Put(w.t, d.real, calendartest.Collection+"c.ics", event("c", at)))
		w.pass(time.Hour + 15*time.Minute)
		w.runJobs()
		require.False(w.t, info().BusyStale)
		require.Len(w.t, info().Slots, 3)
		d.answers(503)
		w.pass(protocol.BusyKept - time.Hour)
		w.runJobs()
		require.Len(w.t, info().Slots, 3)
		w.pass(time.Hour + time.Second)
		at = at.Add(24 * time.Hour)
		require.True(w.t, info().BusyStale, "a day later nothing is known")
		require.Len(w.t, info().Slots, 4)
	})
}

// TestCalendar_Trouble: each way in which a server refuses is told to the owner with the way out, and what
// was given up is done once the owner has acted.
func TestCalendar_Trouble(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		d := w.keep()
		wrong := login(d.url)
		wrong.Password = "wrong"
		a := must.Get(does(w, w.ConnectCalendar, owner("asha"), wrong))(w.t)
		w.runJobs()
		a = w.account(a.ID)
		require.False(w.t, a.Checking)
		require.Contains(w.t, *a.LastError, "app password")
		require.Nil(w.t, a.LastSuccess)

		again := w.connect(d.url)
		require.Equal(w.t, a.ID, again.ID, "the same address and user replaces the password")
		require.Nil(w.t, again.LastError)
		require.NotNil(w.t, again.LastSuccess)

		r := w.asked(1, start.Add(24*time.Hour))
		mine := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:mine\r\nDTSTAMP:20261101T000000Z\r\nDTSTART:20270101T000000Z\r\n" +
			"DURATION:PT30M\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
		place := calendartest.Collection + r.Request.ID + ".ics"
		require.Equal(w.t, 201, calendartest.Put(w.t, d.real, place, mine))
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		view := w.own(r).Calendar
		require.Equal(w.t, protocol.CalendarFailed, view.State)
		require.Contains(w.t, *view.Reason, "delete that event")
		require.Contains(w.t, d.events(w.t, calendartest.Collection)[0], "UID:mine", "what is the owner's is not touched")
		status, _ := calendartest.Ask(w.t, d.real, http.MethodDelete, place, "")
		require.Equal(w.t, 200, status)
		must.Get(does(w, w.CheckCalendar, owner("asha"), protocol.CalendarRef{ID: a.ID}))(w.t)
		w.runJobs()
		require.Equal(w.t, protocol.CalendarWritten, w.own(r).Calendar.State)
		require.Len(w.t, d.events(w.t, calendartest.Collection), 1)

		d.answers(403)
		later := w.asked(2, start.Add(30*time.Hour))
		require.NoError(w.t, moves["approve"](w, later))
		w.runJobs()
		view = w.own(later).Calendar
		require.Equal(w.t, protocol.CalendarFailed, view.State)
		require.Contains(w.t, *view.Reason, "choose another calendar")

		// Down for two days: it is given up, and done when the owner asks.
		d.answers(503)
		last := w.asked(3, start.Add(90*time.Hour))
		require.NoError(w.t, moves["approve"](w, last))
		for range 40 {
			w.pass(80 * time.Minute)
			w.runJobs()
		}
		require.Equal(w.t, protocol.CalendarFailed, w.own(last).Calendar.State)
		d.answers(0)
		must.Get(does(w, w.CheckCalendar, owner("asha"), protocol.CalendarRef{ID: a.ID}))(w.t)
		w.runJobs()
		require.Len(w.t, d.events(w.t, calendartest.Collection), 3)
	})
}

// TestCalendar_Choose: a calendar that the node makes, one that is written of all accounts, meetings that
// were approved before, and what remains after a disconnection.
func TestCalendar_Choose(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		d := w.keep()
		before := w.asked(1, start.Add(24*time.Hour))
		require.NoError(w.t, moves["approve"](w, before))
		w.runJobs()
		require.Equal(w.t, protocol.CalendarNone, w.own(before).Calendar.State)
		a := w.connect(d.url + calendartest.Collection)
		require.Equal(w.t, protocol.CalendarWritten, w.own(before).Calendar.State, "it is put on the calendar that was connected later")

		choose := func(c protocol.CalendarChoice) (protocol.CalendarAccount, error) {
			c.ID = a.ID
			return does(w, w.ChooseCalendars, owner("asha"), c)
		}
		_, err := choose(protocol.CalendarChoice{Reads: []string{d.url + "/other/"}, Writes: "https://example.org/"})
		require.Len(w.t, protocol.AsError(err).Faults, 2)

		w.dies = true
		must.Get(choose(protocol.CalendarChoice{Create: "Meetings & more"}))(w.t)
		w.runJobs()
		made := w.account(a.ID)
		require.Len(w.t, made.Calendars, 2, "made once")
		require.Contains(w.t, *made.Writes, a.ID)
		require.Empty(w.t, made.Reads)
		require.Nil(w.t, made.BusyReadAt)
		r := w.asked(2, start.Add(30*time.Hour))
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		require.Equal(w.t, "Meetings & more", *w.own(r).Calendar.Calendar)
		require.Len(w.t, d.events(w.t, strings.TrimPrefix(*made.Writes, d.url)), 1)
		require.Len(w.t, d.events(w.t, calendartest.Collection), 1)

		// The meeting that the other calendar has stays there, and follows its moves.
		_, err = does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(before), StartsAt: start.Add(26 * time.Hour).Format(time.RFC3339)})
		require.NoError(w.t, err)
		w.runJobs()
		require.Contains(w.t, d.events(w.t, calendartest.Collection)[0], "SEQUENCE:1\r\n")

		second := w.connect(d.url + "/asha/")
		require.Nil(w.t, second.Writes, "another account is written")
		must.Get(does(w, w.ChooseCalendars, owner("asha"),
			protocol.CalendarChoice{CalendarRef: protocol.CalendarRef{ID: second.ID}, Writes: second.Calendars[0].URL}))(w.t)
		require.Nil(w.t, w.account(a.ID).Writes)

		changes := len(d.changes)
		for _, id := range []string{a.ID, second.ID} {
			must.Get(does(w, w.DisconnectCalendar, owner("asha"), protocol.CalendarRef{ID: id}))(w.t)
		}
		w.pass(time.Hour)
		asked := d.asked
		w.runJobs()
		require.NoError(w.t, moves["cancel"](w, r))
		w.runJobs()
		require.Equal(w.t, []any{changes, asked}, []any{len(d.changes), d.asked}, "nothing is asked any more")
		require.Equal(w.t, protocol.CalendarNone, w.own(r).Calendar.State)
	})
}

// TestCalendar_Limits: addresses that are refused at once, the cap, and whose accounts are whose.
func TestCalendar_Limits(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		w.calendars()
		w.Private = false
		w.person("bela")
		for _, address := range []string{
			"http://cal.example.org/", "https://127.0.0.1/", "https://10.0.0.1/dav/", "https://localhost/", "https://u:p@cal.example.org/",
			"https://cal.example.org:8443/", "https://cal.example.org/?x=1", "https://[::1]/", "https://169.254.169.254/",
		} {
			_, err := does(w, w.ConnectCalendar, owner("asha"), login(address))
			require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), address)
			require.Equal(w.t, "/address", protocol.AsError(err).Faults[0].Pointer, address)
		}
		var last protocol.CalendarAccount
		for i := range protocol.MaxCalendarAccounts {
			a := must.Get(does(w, w.ConnectCalendar, owner("asha"), login(fmt.Sprintf("https://cal%d.example.org/", i))))(w.t)
			last = a
		}
		_, err := does(w, w.ConnectCalendar, owner("asha"), login("https://more.example.org/"))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err))
		require.ErrorContains(w.t, err, "disconnect_calendar")
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.GetCalendar, owner("bela"), protocol.CalendarRef{ID: last.ID}))))
		_, err = does(w, w.ChooseCalendars, owner("asha"), protocol.CalendarChoice{CalendarRef: protocol.CalendarRef{ID: last.ID}, Create: "x"})
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err), "the server has not answered")

		// What is stored has no password, and goes with the profile.
		require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			all, err := tx.Calendars().OfProfile(ctx, "asha")
			require.Len(w.t, all, protocol.MaxCalendarAccounts)
			require.NotContains(w.t, fmt.Sprintf("%s %+v", all[0].Sealed, all), calendartest.Password)
			return err
		}))
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") }))
		require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(w.t, must.Get(tx.Calendars().OfProfile(ctx, "asha"))(w.t))
			return nil
		}))
	})
}

// An invitation that the owner declined is free time, also on a server that tells no address of its user: the one for notices is known.
func TestCalendar_Declined(t *testing.T) {
	anyEngine(t, false, func(w *world) {
		d := w.keep()
		rules := always()
		rules.ShowSlots = true
		w.settings("asha", rules)
		at := start.Add(24 * time.Hour)
		for name, attendee := range map[string]string{"own": "Asha@mail.example", "other": "ravi@mail.example"} {
			require.Equal(w.t, 201, calendartest.Put(w.t, d.real, calendartest.Collection+name+".ics", fmt.Sprintf("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n"+
				"BEGIN:VEVENT\r\nUID:%s\r\nDTSTAMP:20261101T000000Z\r\nDTSTART:%s\r\nDURATION:PT30M\r\nORGANIZER:mailto:boss@mail.example\r\n"+
				"ATTENDEE;PARTSTAT=DECLINED:MAILTO:%s\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n", name, at.Format("20060102T150405Z"), attendee)))
			at = at.Add(30 * time.Minute)
		}
		at = start.Add(24 * time.Hour)
		w.connect(d.url)
		open := func() int {
			w.t.Helper()
			q := protocol.MeetingQuery{Handle: "asha", From: at.Format(time.RFC3339), To: at.Add(2 * time.Hour).Format(time.RFC3339)}
			i := must.Get(does(w, w.Info, protocol.Caller{}, q))(w.t)
			return len(i.Slots)
		}
		require.Equal(w.t, 2, open(), "whose addresses these are is not known")
		for _, confirmed := range []bool{false, true} {
			require.NoError(w.t, w.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@mail.example", Confirmed: confirmed})
			}))
			w.pass(protocol.BusyFor)
			w.runJobs()
			require.Equal(w.t, map[bool]int{false: 2, true: 3}[confirmed], open(), "confirmed: %v", confirmed)
		}
	})
}
