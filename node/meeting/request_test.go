package meeting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/meeting"
	"stoa/node/provider/mail"
	"stoa/node/webhook"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// start is a Monday, 10:00 in India.
var start = time.Date(2026, 11, 2, 4, 30, 0, 0, time.UTC)

// A world is a node with meetings and a clock, and the mails that it sent.
type world struct {
	*meeting.Meeting
	t    *testing.T
	db   *storage.DB
	now  *atomic.Int64 // Unix milliseconds
	mu   sync.Mutex
	sent []meeting.Letter
	raw  [][]byte // of those in sent that were composed before
	fail error    // what the mail server answers

	told []protocol.Notice
	dies bool // each job dies once, after its effect and before its commit
}

// sender composes letters, and knows the addresses to which answers come.
var sender = &mail.Sender{From: "calendar@node.example", Name: "Node", Host: "node.example", ReturnKey: []byte("key")}

func (w *world) Answers(id string) string { return sender.Return().Answers(id) }

func (w *world) Compose(l meeting.Letter) ([]byte, error) {
	x := mail.Message{ID: l.ID, To: l.To, Subject: l.Subject, Text: l.Text, HTML: l.HTML, Name: l.From, Date: l.Date, Bounce: l.Bounce}
	if l.Method != "" {
		x.Calendar = &mail.Calendar{Method: l.Method, Object: l.Calendar}
	}
	return sender.Compose(x)
}

func (w *world) Send(_ context.Context, l meeting.Letter, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail == nil {
		w.sent, w.raw = append(w.sent, l), append(w.raw, raw)
	}
	return w.fail
}

func open(t *testing.T, c storage.Config, now *atomic.Int64, mails bool) *world {
	c.Now = func() time.Time { return time.UnixMilli(now.Load()).UTC() }
	w := &world{t: t, db: storagetest.OpenConfig(t, c), now: now}
	seal, err := key.NewSealer(make([]byte, 32))
	require.NoError(t, err)
	w.Meeting = &meeting.Meeting{Base: "https://node.example", DB: w.db, LinkKey: []byte("key"), Mail: func() meeting.Mailer { return nil }, Seal: seal}
	if mails {
		w.Meeting.Mail = func() meeting.Mailer { return w }
	}
	return w
}

// each runs a test on both engines with a person, asha, who takes meetings at all hours.
func each(t *testing.T, mails bool, fn func(w *world)) {
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := &atomic.Int64{}
		now.Store(start.UnixMilli())
		w := open(t, c, now, mails)
		w.person("asha")
		w.settings("asha", always())
		fn(w)
	})
}

// always are rules by which every time is open.
func always() protocol.MeetingRules {
	r := protocol.MeetingRules{Durations: []int{30}, MaxPerDay: 100, MaxWaiting: 100}
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		r.UsualHours = append(r.UsualHours, protocol.MeetingHours{Day: day, MeetingWindow: protocol.MeetingWindow{From: "00:00", To: "24:00"}})
	}
	return r
}

func (w *world) pass(d time.Duration) { w.now.Add(d.Milliseconds()) }
func (w *world) clock() time.Time     { return time.UnixMilli(w.now.Load()).UTC() }

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) error {
	return w.db.Write(context.Background(), fn)
}

func (w *world) person(handle string) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "Asha Rao", Kind: protocol.Person}})
		return err
	}))
}

func owner(handle string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Handle: handle, Handles: []string{handle}, Network: "owner"}
}

func stranger(n int) protocol.Caller {
	return protocol.Caller{Standing: protocol.Proof, Network: fmt.Sprint("network ", n)}
}

func (w *world) settings(handle string, r protocol.MeetingRules) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.PutSettings(ctx, tx, owner(handle), protocol.MeetingDraft{Owned: protocol.Owned{Handle: handle}, Accepting: true, MeetingRules: r})
		return err
	}))
}

// asks asks asha for half an hour.
func (w *world) asks(c protocol.Caller, mail string, at time.Time) (got protocol.MeetingReceipt, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		got, err = w.Ask(ctx, tx, c, protocol.NewMeeting{
			Handle: "asha", Requester: "Ravi", Email: mail, Purpose: "Yarn.", DurationMin: 30, StartsAt: at.Format(time.RFC3339),
		})
		return err
	})
	return got, err
}

// asked is asks by somebody new, submitted.
func (w *world) asked(n int, at time.Time) protocol.MeetingReceipt {
	w.t.Helper()
	got, err := w.asks(stranger(n), fmt.Sprintf("ravi%d@example.org", n), at)
	require.NoError(w.t, err)
	return got
}

func (w *world) get(r protocol.MeetingReceipt) (got protocol.MeetingRequest) {
	w.t.Helper()
	require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		got, err = w.Get(ctx, tx, protocol.Caller{}, protocol.MeetingInput{ID: r.Request.ID, StatusToken: r.StatusToken})
		return err
	}))
	return got
}

// does runs one operation.
func does[In, Out any](w *world, op func(context.Context, *storage.Tx, protocol.Caller, In) (Out, error), c protocol.Caller, in In) (out Out, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		out, err = op(ctx, tx, c, in)
		return err
	})
	return out, err
}

// notice is the job of a notice.
func (w *world) notice(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	var n protocol.Notice
	err := json.Unmarshal(j.Args, &n)
	return func(context.Context, *storage.Tx) error { w.told = append(w.told, n); return nil }, err
}

// runJobs runs what is due, until nothing is.
func (w *world) runJobs() {
	w.t.Helper()
	handlers := map[storage.JobKind]func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error){
		storage.MeetingDueJob: w.Due, storage.MeetingMailJob: w.SendMail, storage.MeetingUpdateJob: w.Update,
		storage.CalendarCheckJob: w.Check, storage.CalendarBusyJob: w.ReadBusy, storage.CalendarEventJob: w.WriteEvent,
		storage.MeetingRemindJob: w.Remind, storage.NoticeJob: w.notice,
	}
	ctx := context.Background()
	for range 200 {
		jobs, _, err := w.db.ClaimJobs(ctx, "test", 10, time.Minute)
		require.NoError(w.t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			var after func(context.Context, *storage.Tx) error
			if handle := handlers[j.Kind]; handle != nil {
				after, err = handle(ctx, j)
				require.NoError(w.t, err)
				if w.dies {
					after, err = handle(ctx, j)
					require.NoError(w.t, err)
				}
			}
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				if after != nil {
					if err := after(ctx, tx); err != nil {
						return err
					}
				}
				return tx.Jobs().Finish(ctx, j.ID)
			}))
		}
	}
	w.t.Fatal("the jobs do not end")
}

func ref(r protocol.MeetingReceipt) protocol.OwnMeetingRef {
	return protocol.OwnMeetingRef{ID: r.Request.ID}
}

func decision(r protocol.MeetingReceipt) protocol.MeetingDecision {
	return protocol.MeetingDecision{OwnMeetingRef: ref(r)}
}

func input(r protocol.MeetingReceipt) protocol.MeetingInput {
	return protocol.MeetingInput{ID: r.Request.ID, StatusToken: r.StatusToken}
}

// moves are what may be done to a request.
var moves = map[string]func(w *world, r protocol.MeetingReceipt) error{
	"approve": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.Approve, owner("asha"), decision(r))
		return err
	},
	"decline": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.Decline, owner("asha"), protocol.MeetingRefusal{MeetingDecision: decision(r)})
		return err
	},
	"propose": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.Propose, owner("asha"), protocol.MeetingProposal{
			OwnMeetingRef: ref(r), Times: []string{w.clock().Add(96 * time.Hour).Format(time.RFC3339)},
		})
		return err
	},
	"move": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: w.clock().Add(120 * time.Hour).Format(time.RFC3339)})
		return err
	},
	"cancel own": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.CancelOwn, owner("asha"), decision(r))
		return err
	},
	"no show": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.NoShow, owner("asha"), ref(r))
		return err
	},
	"cancel": func(w *world, r protocol.MeetingReceipt) error {
		_, err := does(w, w.Cancel, protocol.Caller{}, input(r))
		return err
	},
	"pick": func(w *world, r protocol.MeetingReceipt) error {
		at := time.Time{}
		if p := w.get(r).Proposals; len(p) > 0 {
			at = p[0].StartsAt
		}
		_, err := does(w, w.Pick, protocol.Caller{}, protocol.MeetingPick{MeetingInput: input(r), StartsAt: at})
		return err
	},
	"wait": func(w *world, r protocol.MeetingReceipt) error { w.pass(200 * time.Hour); w.runJobs(); return nil },
}

// TestStates: every arrow leads where contract §5 says, and everything else is a conflict that changes
// nothing.
func TestStates(t *testing.T) {
	t.Parallel()
	ways := map[protocol.MeetingState][]string{ // how a request gets there
		protocol.MeetingSubmitted: {}, protocol.MeetingProposed: {"propose"}, protocol.MeetingApproved: {"approve"}, protocol.MeetingDeclined: {"decline"},
		protocol.MeetingWithdrawn: {"cancel"}, protocol.MeetingExpired: {"wait"}, protocol.MeetingCancelled: {"approve", "cancel"},
		protocol.MeetingDone: {"approve", "wait"}, protocol.MeetingNoShow: {"approve", "wait", "no show"},
	}
	arrows := map[protocol.MeetingState]map[string]protocol.MeetingState{
		protocol.MeetingSubmitted: {"approve": protocol.MeetingApproved, "decline": protocol.MeetingDeclined, "propose": protocol.MeetingProposed,
			"cancel": protocol.MeetingWithdrawn, "wait": protocol.MeetingExpired},
		protocol.MeetingProposed: {"pick": protocol.MeetingApproved, "decline": protocol.MeetingDeclined, "cancel": protocol.MeetingWithdrawn,
			"wait": protocol.MeetingExpired},
		protocol.MeetingApproved: {"approve": protocol.MeetingApproved, "move": protocol.MeetingApproved, "cancel": protocol.MeetingCancelled,
			"cancel own": protocol.MeetingCancelled, "wait": protocol.MeetingDone},
		protocol.MeetingDeclined:  {"decline": protocol.MeetingDeclined},
		protocol.MeetingWithdrawn: {"cancel": protocol.MeetingWithdrawn},
		protocol.MeetingCancelled: {"cancel": protocol.MeetingCancelled, "cancel own": protocol.MeetingCancelled},
		protocol.MeetingDone:      {"no show": protocol.MeetingNoShow},
		protocol.MeetingNoShow:    {"no show": protocol.MeetingNoShow},
	}
	each(t, false, func(w *world) {
		n := 0
		for from, way := range ways {
			for name, do := range moves {
				n++
				r := w.asked(n, w.clock().Add(time.Duration(24+n)*time.Hour).Truncate(time.Minute))
				for _, step := range way {
					require.NoError(w.t, moves[step](w, r), "%s to %s", step, from)
				}
				before := w.get(r)
				require.Equal(w.t, from, before.State)
				err := do(w, r)
				after := w.get(r)
				want, there := arrows[from][name]
				if !there && name != "wait" {
					require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err), "%s of one that is %s", name, from)
					require.Equal(w.t, before, after, "%s of one that is %s changes nothing", name, from)
					continue
				}
				if !there {
					want = from
				}
				require.NoError(w.t, err, "%s of one that is %s", name, from)
				require.Equal(w.t, want, after.State, "%s of one that is %s", name, from)
				if want == from && name != "move" {
					require.Len(w.t, after.History, len(before.History), "%s of one that is %s is no second move", name, from)
				}
				if want != from {
					require.Equal(w.t, want, after.History[len(after.History)-1].State)
				}
				if !slices.Contains([]protocol.MeetingState{protocol.MeetingDone, protocol.MeetingNoShow, protocol.MeetingCancelled, protocol.MeetingDeclined,
					protocol.MeetingWithdrawn, protocol.MeetingExpired}, after.State) { // so that the day is free for the next ones
					_ = moves["cancel"](w, r)
				}
			}
		}
		require.NoError(w.t, w.db.Check(context.Background()))
	})
}

// TestMove_Sequence: a move of an approved meeting raises the sequence, and so does a cancellation.
func TestMove_Sequence(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.NoError(w.t, moves["approve"](w, r))
		require.Zero(w.t, w.get(r).Sequence)
		require.NoError(w.t, moves["move"](w, r))
		require.NoError(w.t, moves["move"](w, r), "to the same time, which is no move")
		got := w.get(r)
		require.Equal(w.t, 1, got.Sequence)
		require.Equal(w.t, start.Add(120*time.Hour), got.StartsAt)
		require.NoError(w.t, moves["cancel own"](w, r))
		require.Equal(w.t, 2, w.get(r).Sequence)
	})
}

// TestBounds: a start is from 15 minutes to 90 days ahead, to the second (spec §2.13).
func TestBounds(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		for i, tt := range []struct {
			name string
			now  time.Duration // of the minute
			at   time.Duration // from the minute
			ok   bool
		}{
			{"15 minutes", 0, 15 * time.Minute, true},
			{"a second less", time.Second, 15 * time.Minute, false},
			{"90 days", 0, 90 * 24 * time.Hour, true},
			{"a minute more", 0, 90*24*time.Hour + time.Minute, false},
			{"a second less than a minute more", 59 * time.Second, 90*24*time.Hour + time.Minute, false},
		} {
			w.now.Store(start.Add(tt.now).UnixMilli())
			_, err := w.asks(stranger(i), fmt.Sprintf("r%d@example.org", i), start.Add(tt.at))
			if tt.ok {
				require.NoError(w.t, err, tt.name)
				continue
			}
			require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), tt.name)
			require.Equal(w.t, "/startsAt", protocol.AsError(err).Faults[0].Pointer, tt.name)
		}
	})
}

var linkIn = func(text string) string {
	_, rest, _ := strings.Cut(text, "ticket=")
	return strings.Fields(rest)[0]
}

// use uses a link.
func (w *world) use(ticket string, do protocol.MeetingLinkDo) error {
	_, err := does(w, w.UseLink, protocol.Caller{}, protocol.MeetingLinkUse{MeetingLinkInput: protocol.MeetingLinkInput{Ticket: ticket}, Do: do})
	return err
}

// TestConfirmation: the person sees nothing before the link of the mail was used; the mail has nothing
// that the requester wrote; looking at the link does nothing; it works once.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	each(t, true, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.Equal(w.t, protocol.MeetingUnconfirmed, r.Request.State)
		require.NotContains(w.t, fmt.Sprint(r), "ravi1@", "no address in an answer")
		w.runJobs()
		require.Len(w.t, w.sent, 1)
		l := w.sent[0]
		require.Equal(w.t, "ravi1@example.org", l.To)
		require.NotContains(w.t, l.Text, "Yarn")
		require.NotContains(w.t, l.Text, "Ravi")
		require.Contains(w.t, l.Text, "Asha Rao")
		ticket := linkIn(l.Text)
		list := func() int {
			page, err := does(w, w.List, owner("asha"), protocol.OwnMeetingQuery{})
			require.NoError(w.t, err)
			return len(page.Items)
		}
		for range 2 {
			shown, err := does(w, w.ReadLink, protocol.Caller{}, protocol.MeetingLinkInput{Ticket: ticket})
			require.NoError(w.t, err)
			require.Equal(w.t, []protocol.MeetingLinkDo{protocol.MeetingLinkConfirm, protocol.MeetingLinkStop}, shown.Do)
		}
		require.Zero(w.t, list(), "invisible to the person")
		_, err := does(w, w.GetOwn, owner("asha"), ref(r))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(moves["approve"](w, r)))
		for _, forged := range []string{ticket[:len(ticket)-1], ticket + "x", "stoa_read_x", "nonsense", strings.Replace(ticket, "read_c", "read_s", 1)} {
			require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(forged, protocol.MeetingLinkConfirm)))
		}
		require.NoError(w.t, w.use(ticket, protocol.MeetingLinkConfirm))
		require.Equal(w.t, protocol.MeetingSubmitted, w.get(r).State)
		require.Equal(w.t, 1, list())
		require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(ticket, protocol.MeetingLinkConfirm)), "once")

		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		require.Len(w.t, w.sent, 2)
		require.Contains(w.t, w.sent[1].Text, "approved")
		require.Contains(w.t, w.sent[1].Text, "Asia/Kolkata")
		own, err := does(w, w.GetOwn, owner("asha"), ref(r))
		require.NoError(w.t, err)
		require.Equal(w.t, protocol.MeetingMailSent, own.Mail)
		require.Equal(w.t, "ravi1@example.org", *own.Email)
	})
}

// TestConfirmation_Dropped: an unconfirmed request is deleted after 24 hours, not a millisecond before.
func TestConfirmation_Dropped(t *testing.T) {
	t.Parallel()
	each(t, true, func(w *world) {
		r := w.asked(1, start.Add(48*time.Hour))
		w.runJobs()
		w.pass(24*time.Hour - time.Millisecond)
		w.runJobs()
		require.Equal(w.t, protocol.MeetingUnconfirmed, w.get(r).State)
		w.pass(time.Millisecond)
		require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(linkIn(w.sent[0].Text), protocol.MeetingLinkConfirm)), "also before the job ran")
		w.runJobs()
		_, err := does(w, w.Get, protocol.Caller{}, input(r))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
	})
}

// TestLimits_Mail: what bounds mail to one mailbox, whoever asks (facts/meetings §8).
func TestLimits_Mail(t *testing.T) {
	t.Parallel()
	each(t, true, func(w *world) {
		w.person("bela")
		w.settings("bela", always())
		at := start.Add(80 * 24 * time.Hour)
		tries := func(n int, mail string) protocol.Code {
			_, err := w.asks(stranger(n), mail, at)
			w.runJobs()
			return protocol.CodeOf(err)
		}
		first, err := w.asks(stranger(1), "victim@gmail.com", at)
		require.NoError(w.t, err)
		w.runJobs()
		require.Equal(w.t, protocol.Conflict, tries(2, "Vic.Tim+tag@googlemail.com"), "the same mailbox waits already")
		_, err = does(w, w.Ask, stranger(20), protocol.NewMeeting{Handle: "bela", Requester: "Ravi", Email: "vicTim+bela@gmail.com", Purpose: "Yarn.",
			DurationMin: 30, StartsAt: at.Format(time.RFC3339)})
		require.Equal(w.t, protocol.RateLimited, protocol.CodeOf(err), "nor by a request to another person")
		require.Len(w.t, w.sent, 1)
		require.NoError(w.t, moves["cancel"](w, first))
		require.Equal(w.t, protocol.RateLimited, tries(3, "victim@gmail.com"), "one mail within 24 hours")
		w.pass(24*time.Hour - time.Millisecond)
		require.Equal(w.t, protocol.RateLimited, tries(4, "victim@gmail.com"))
		w.pass(time.Millisecond)
		for n := range 2 {
			require.Empty(w.t, tries(5+n, "victim@gmail.com"))
			w.pass(24 * time.Hour)
			w.runJobs()
		}
		require.Equal(w.t, protocol.Conflict, tries(8, "victim@gmail.com"), "three until a link is used")
		require.Len(w.t, w.sent, 3)

		require.Empty(w.t, tries(9, "other@example.org"))
		stop := w.sent[len(w.sent)-1].Text
		stop = linkIn(stop[strings.LastIndex(stop, "no more mail"):])
		require.NoError(w.t, w.use(stop, protocol.MeetingLinkStop))
		require.NoError(w.t, w.use(stop, protocol.MeetingLinkStop), "again, which changes nothing")
		w.pass(48 * time.Hour)
		w.runJobs()
		require.Equal(w.t, protocol.ContactRefused, tries(10, "other+x@example.org"), "never mail me again")

		w.PerHour = 2
		require.Empty(w.t, tries(11, "a@example.org"))
		require.Empty(w.t, tries(12, "b@example.org"))
		require.Equal(w.t, protocol.RateLimited, tries(13, "c@example.org"), "the node's limit of an hour")
		w.pass(time.Hour)
		require.Empty(w.t, tries(14, "c@example.org"))
	})
}

// TestLimits_Waiting: how many requests of one mailbox, one network and of everybody may wait.
func TestLimits_Waiting(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		hours := 24
		tries := func(n int, mail, to string) (protocol.MeetingReceipt, protocol.Code) {
			hours++
			got, err := does(w, w.Ask, stranger(n), protocol.NewMeeting{Handle: to, Requester: "Ravi", Email: mail, Purpose: "Yarn.", DurationMin: 30,
				StartsAt: start.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)})
			return got, protocol.CodeOf(err)
		}
		first, code := tries(1, "a@example.org", "asha")
		require.Empty(w.t, code)
		_, code = tries(2, "A+x@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "one of a mailbox")
		for _, mail := range []string{"b@example.org", "c@example.org"} {
			_, code = tries(1, mail, "asha")
			require.Empty(w.t, code)
		}
		_, code = tries(1, "d@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "three of a network")
		require.NoError(w.t, moves["decline"](w, first))
		_, code = tries(1, "d@example.org", "asha")
		require.Empty(w.t, code, "one that is decided waits no more")

		r := always()
		r.MaxWaiting = 4
		w.settings("asha", r)
		_, code = tries(3, "e@example.org", "asha")
		require.Empty(w.t, code)
		_, code = tries(4, "f@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "as many as the person wants")
		for n := range 4 {
			w.person(fmt.Sprint("p", n))
			w.settings(fmt.Sprint("p", n), always())
		}
		for n := range 7 {
			_, code = tries(1, fmt.Sprintf("g%d@example.org", n), fmt.Sprint("p", n/3))
			require.Empty(w.t, code)
		}
		_, code = tries(1, "h@example.org", "p3")
		require.Equal(w.t, protocol.Conflict, code, "ten of a network on the node")
		_, err := does(w, w.Ask, owner("asha"), protocol.NewMeeting{Handle: "asha", Requester: "A", Email: "a@b.example", Purpose: "p", DurationMin: 30,
			StartsAt: start.Add(9 * time.Hour).Format(time.RFC3339)})
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(err))
	})
}

// TestWarnings: what is to be known about a time is said and refuses nothing; an approved meeting does.
func TestWarnings(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		w.settings("asha", protocol.MeetingRules{MaxPerDay: 1})
		at := start.Add(24 * time.Hour) // Tuesday, 10:00 in India
		one, two, night := w.asked(1, at), w.asked(2, at), w.asked(3, at.Add(12*time.Hour))
		own := func(r protocol.MeetingReceipt) protocol.OwnMeeting {
			got, err := does(w, w.GetOwn, owner("asha"), ref(r))
			require.NoError(w.t, err)
			return got
		}
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOverlaps}, own(one).Warnings, "the other request")
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours}, own(night).Warnings)
		require.NoError(w.t, moves["approve"](w, one))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(moves["approve"](w, two)))
		require.Equal(w.t, protocol.MeetingSubmitted, w.get(two).State)
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours, protocol.WarnDayFull}, own(night).Warnings)
		require.NoError(w.t, moves["approve"](w, night))
		short, err := w.asks(stranger(8), "x@eu.Mailinator.com", at.Add(96*time.Hour))
		require.NoError(w.t, err, "marked, and not refused")
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours, protocol.WarnDisposable}, own(short).Warnings)
		w.settings("asha", protocol.MeetingRules{OutsideHours: "refuse"})
		_, err = w.asks(stranger(9), "x@example.org", at.Add(12*time.Hour))
		require.Equal(w.t, "not-open", protocol.AsError(err).Faults[0].Code)
		_, err = w.asks(stranger(9), "x@example.org", at)
		require.Equal(w.t, "not-open", protocol.AsError(err).Faults[0].Code, "the same, whatever the reason")
	})
}

// TestNoOverlap: no two approved meetings of a person overlap, whatever runs at once, at two processes on
// PostgreSQL.
func TestNoOverlap(t *testing.T) {
	t.Parallel()
	seed := storagetest.Seed(t)
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := &atomic.Int64{}
		now.Store(start.UnixMilli())
		one := open(t, c, now, false)
		worlds := []*world{one}
		if c.URL != "" {
			worlds = append(worlds, open(t, c, now, false))
		}
		one.person("asha")
		one.settings("asha", always())
		var made []protocol.MeetingReceipt
		for n := range 16 {
			made = append(made, one.asked(n, start.Add(24*time.Hour+time.Duration(n%4)*10*time.Minute)))
		}
		var all sync.WaitGroup
		for p := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(p)))
				w := worlds[p%len(worlds)]
				times := func() string {
					return start.Add(24*time.Hour + time.Duration(r.IntN(24))*10*time.Minute).Format(time.RFC3339)
				}
				for range storagetest.Rounds(t, 40) {
					m := made[r.IntN(len(made))]
					var err error
					switch r.IntN(6) {
					case 0, 1:
						err = moves["approve"](w, m)
					case 2:
						_, err = does(w, w.Propose, owner("asha"), protocol.MeetingProposal{OwnMeetingRef: ref(m), Times: []string{times()}})
					case 3:
						at := time.Time{}
						if got, e := does(w, w.Get, protocol.Caller{}, input(m)); e == nil && len(got.Proposals) > 0 {
							at = got.Proposals[0].StartsAt
						}
						_, err = does(w, w.Pick, protocol.Caller{}, protocol.MeetingPick{MeetingInput: input(m), StartsAt: at})
					case 4:
						_, err = does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(m), StartsAt: times()})
					case 5:
						if r.IntN(4) == 0 {
							err = moves["cancel"](w, m)
						}
					}
					if code := protocol.CodeOf(err); err != nil && code != protocol.Conflict && code != protocol.Validation {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		approved := []protocol.MeetingRequest{}
		for _, m := range made {
			if got := one.get(m); got.State == protocol.MeetingApproved {
				approved = append(approved, got)
			}
		}
		require.NotEmpty(t, approved)
		for i, a := range approved {
			for _, b := range approved[:i] {
				require.False(t, a.StartsAt.Before(b.EndsAt) && b.StartsAt.Before(a.EndsAt), "%s and %s", a.ID, b.ID)
			}
		}
	})
}

// TestForgetMail: a mail address is deleted 30 days after the meeting.
func TestForgetMail(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.NoError(w.t, moves["approve"](w, r))
		forget := func() (n int) {
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
				n, err = tx.Meetings().ForgetMail(ctx)
				return err
			}))
			return n
		}
		w.now.Store(start.Add(24*time.Hour + 30*time.Minute + 30*24*time.Hour - time.Millisecond).UnixMilli())
		require.Zero(w.t, forget())
		w.pass(time.Millisecond)
		require.Equal(w.t, 1, forget())
		require.Zero(w.t, forget())
		w.runJobs()
		own, err := does(w, w.GetOwn, owner("asha"), ref(r))
		require.NoError(w.t, err)
		require.Nil(w.t, own.Email)
		require.Equal(w.t, protocol.MeetingDone, own.State)
	})
}

// TestMail_Outcome: the person sees whether the requester got the mail; a temporary failure is tried again
// with the same id, a final one is not, and who wants no mail gets none.
func TestMail_Outcome(t *testing.T) {
	t.Parallel()
	each(t, true, func(w *world) {
		confirmed := func(n int) protocol.MeetingReceipt {
			r := w.asked(n, start.Add(time.Duration(24+n)*time.Hour))
			w.runJobs()
			require.NoError(w.t, w.use(linkIn(w.sent[len(w.sent)-1].Text), protocol.MeetingLinkConfirm))
			return r
		}
		is := func(r protocol.MeetingReceipt, want protocol.MeetingMail) {
			w.t.Helper()
			got, err := does(w, w.GetOwn, owner("asha"), ref(r))
			require.NoError(w.t, err)
			require.Equal(w.t, want, got.Mail)
		}
		r := confirmed(1)
		w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		is(r, protocol.MeetingMailQueued)
		w.fail = nil
		w.pass(time.Minute)
		w.runJobs()
		is(r, protocol.MeetingMailSent)
		require.Equal(w.t, r.Request.ID+".3", w.sent[len(w.sent)-1].ID)
		n := len(w.sent)
		w.runJobs()
		require.Len(w.t, w.sent, n)

		r = confirmed(2)
		w.fail = protocol.Errorf(protocol.Gone, "no such mailbox")
		require.NoError(w.t, moves["decline"](w, r))
		w.runJobs()
		is(r, protocol.MeetingMailFailed)
		w.fail = nil

		r = confirmed(3)
		text := w.sent[len(w.sent)-1].Text
		require.NoError(w.t, w.use(linkIn(text[strings.LastIndex(text, "no more mail"):]), protocol.MeetingLinkStop))
		require.NoError(w.t, moves["approve"](w, r))
		n = len(w.sent)
		w.runJobs()
		require.Len(w.t, w.sent, n)
		is(r, protocol.MeetingMailNone)
	})
}

// TestLimits_Day: how many requests of one network, and to one person, are taken within a day, whatever
// became of them.
func TestLimits_Day(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		w.person("bela")
		w.settings("bela", always())
		at := start.Add(240 * time.Hour)
		ask := func(network, n int, to string) protocol.Code {
			got, err := does(w, w.Ask, stranger(network), protocol.NewMeeting{Handle: to, Requester: "Ravi", Email: fmt.Sprintf("r%d@example.org", n), Purpose: "Yarn.",
				DurationMin: 30, StartsAt: at.Format(time.RFC3339)})
			if err == nil {
				require.NoError(w.t, moves["cancel"](w, got))
			}
			return protocol.CodeOf(err)
		}
		for n := range 20 {
			require.Empty(w.t, ask(1, n, []string{"asha", "bela"}[n%2]))
		}
		require.Equal(w.t, protocol.RateLimited, ask(1, 20, "asha"))
		w.pass(24 * time.Hour)
		require.Empty(w.t, ask(1, 21, "asha"))
		for n := range 99 {
			require.Empty(w.t, ask(2+n, 100+n, "asha"))
		}
		require.Equal(w.t, protocol.RateLimited, ask(200, 300, "asha"))
		require.Empty(w.t, ask(200, 300, "bela"))
	})
}

// TestBlocked: whom the person has blocked, by name, may not ask.
func TestBlocked(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		key := protocol.Caller{Standing: protocol.Signed, KeyID: "k1", Network: "n"}
		_, err := w.asks(key, "a@example.org", start.Add(24*time.Hour))
		require.NoError(w.t, err)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			b := storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: "asha", Writer: "key:k1", Names: []string{"key:k1"}}
			return tx.ContactBlocks().Insert(ctx, &b)
		}))
		_, err = w.asks(key, "b@example.org", start.Add(25*time.Hour))
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(err))
		_, err = w.asks(stranger(1), "b@example.org", start.Add(25*time.Hour))
		require.NoError(w.t, err)
	})
}

// TestVerifiedDomain: with requireVerifiedDomain a request needs the signature of a key whose directory is at the domain
// of the mail address; no other standing is enough.
func TestVerifiedDomain(t *testing.T) {
	t.Parallel()
	one(t, func(w *world) {
		rules := always()
		rules.VerifiedDomain = true
		w.settings("asha", rules)
		by := func(level protocol.ProofLevel, subject string) protocol.Caller {
			proof := protocol.AuthorProof{Level: level, Subject: &subject}
			return protocol.Caller{Standing: protocol.Signed, KeyID: "k " + subject, Network: "n " + subject, Proof: proof}
		}
		for what, c := range map[string]protocol.Caller{
			"proof of work": stranger(1), "another site": by(protocol.ByDirectory, "https://agent.example.com"),
			"a site that ends alike": by(protocol.ByDirectory, "https://notexample.org"), "a chain identity": by(protocol.ByChainKey, "https://agent.example.org"),
			"an owner's token": {Standing: protocol.Session, Handle: "bela", Handles: []string{"bela"}},
		} {
			_, err := w.asks(c, "ravi@example.org", start.Add(24*time.Hour))
			require.Equal(t, protocol.ContactRefused, protocol.CodeOf(err), what)
			require.ErrorContains(t, err, "key directory at the domain of the mail address", what)
		}
		for n, subject := range []string{"https://agent.example.org", "https://example.org:8443"} {
			_, err := w.asks(by(protocol.ByDirectory, subject), fmt.Sprintf("ravi%d@Mail.Example.org", n), start.Add(time.Duration(24+n)*time.Hour))
			require.NoError(t, err, subject)
		}
	})
}

// A hook is a receiver of callbacks.
type hook struct {
	bodies [][]byte
	ids    []string
	fail   error
}

func (h *hook) Send(_ context.Context, _, id string, body []byte) error {
	h.ids, h.bodies = append(h.ids, id), append(h.bodies, body)
	return h.fail
}

// TestUpdate: callbackUrl is told of each change, a failed delivery is made again with the same id, and
// none after the receiver is gone.
func TestUpdate(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		h := &hook{}
		w.Webhook = h
		r, err := does(w, w.Ask, stranger(1), protocol.NewMeeting{Handle: "asha", Requester: "Ravi", Email: "r@example.org", Purpose: "Yarn.", DurationMin: 30,
			StartsAt: start.Add(24 * time.Hour).Format(time.RFC3339), CallbackURL: "https://agent.example/hook"})
		require.NoError(w.t, err)
		w.runJobs()
		require.Empty(w.t, h.ids, "the requester knows of the request")
		h.fail = &webhook.Failure{Kind: webhook.ErrRetry, Status: 503}
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		h.fail = nil
		w.pass(time.Minute)
		w.runJobs()
		require.Equal(w.t, []string{r.Request.ID + "-2", r.Request.ID + "-2"}, h.ids)
		var u protocol.MeetingUpdate
		require.NoError(w.t, json.Unmarshal(h.bodies[1], &u))
		require.Equal(w.t, []any{"meeting.updated", r.Request.ID, protocol.MeetingApproved}, []any{u.Type, u.MeetingID, u.State})
		require.NotContains(w.t, string(h.bodies[1]), "r@example.org")
		h.fail = &webhook.Failure{Kind: webhook.ErrGone, Status: 410}
		require.NoError(w.t, moves["move"](w, r))
		w.runJobs()
		require.NoError(w.t, moves["cancel"](w, r))
		w.runJobs()
		require.Len(w.t, h.ids, 3, "nothing more after 410")
	})
}
