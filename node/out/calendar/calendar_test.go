package calendar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/calendar/calendartest"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/protocol/must"
)

func open(t *testing.T, base string) *CalDAV {
	t.Helper()
	zone, ok := protocol.Zone("Asia/Kolkata")
	require.True(t, ok)
	return &CalDAV{Client: client(), URL: base + collection, User: user, Password: password, Zone: zone, Node: "node.example"}
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	x := must.Get(time.Parse(time.RFC3339, s))(t)
	return x
}

// meeting is one on 1 December, an hour later with each sequence.
func meeting(t *testing.T, sequence int) Meeting {
	t.Helper()
	e := ics.Event{
		ID: "mtg_1", Node: "node.example", Summary: "Asha / Ravi, \"K\"", Description: "line 1\nline 2, आशा", Sequence: sequence,
		Start: at(t, "2026-12-01T05:30:00Z").Add(time.Duration(sequence) * time.Hour), End: at(t, "2026-12-01T06:00:00Z").Add(time.Duration(sequence) * time.Hour),
		Stamp: at(t, "2026-11-23T00:00:00Z"), Alarm: 15 * time.Minute,
	}
	object := must.Get(e.Stored())(t)
	return Meeting{ID: e.ID, UID: ics.UID(e.ID, e.Node), Sequence: sequence, Object: object}
}

func foreign(uid string, lines ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:" + uid + "\r\nDTSTAMP:20261101T000000Z\r\nSUMMARY:private\r\n" +
		strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
}

// stored returns what the calendar has of a meeting.
func stored(t *testing.T, c *CalDAV, m Meeting) (event, error) {
	t.Helper()
	place := must.Get(c.place(m))(t)
	return c.event(t.Context(), place)
}

func shown(t *testing.T, c *CalDAV, from, to string) []string {
	t.Helper()
	busy := must.Get(c.Busy(t.Context(), at(t, from), at(t, to)))(t)
	var s []string
	for _, b := range busy {
		s = append(s, b.Start.In(c.Zone).Format("02 15:04-")+b.End.In(c.Zone).Format("02 15:04"))
	}
	slices.Sort(s)
	return s
}

// exercise is what a CalDAV server and this client do together.
func exercise(t *testing.T, base string) {
	c := open(t, base)
	m := meeting(t, 0)
	require.Equal(t, "caldav", c.Name())
	require.NoError(t, c.Delete(t.Context(), m), "there is nothing to delete")
	require.NoError(t, c.Put(t.Context(), m))
	require.NoError(t, c.Put(t.Context(), m), "again")
	e, err := stored(t, c, m)
	require.NoError(t, err)
	require.Equal(t, m.UID, e.uid)
	require.Equal(t, 0, e.sequence)

	require.NoError(t, c.Put(t.Context(), meeting(t, 2)), "moved")
	require.NoError(t, c.Put(t.Context(), meeting(t, 1)), "an older job comes late")
	e = must.Get(stored(t, c, m))(t)
	require.Equal(t, 2, e.sequence)

	// The owner's events, and not those of the node.
	for i, lines := range [][]string{
		{"DTSTART:20261201T053000Z", "DTEND:20261201T060000Z"}, {"DTSTART;VALUE=DATE:20261202", "DTEND;VALUE=DATE:20261203"},
		{"DTSTART:20261105T100000Z", "DURATION:PT30M", "RRULE:FREQ=WEEKLY", "EXDATE:20261210T100000Z"},
		{"DTSTART:20261201T080000Z", "DURATION:PT30M", "TRANSP:TRANSPARENT"}, {"DTSTART:20261201T090000Z", "DURATION:PT30M", "STATUS:CANCELLED"},
	} {
		require.Equal(t, http.StatusCreated, calendartest.Put(t, base, fmt.Sprintf("%sown%d.ics", collection, i), foreign(fmt.Sprintf("own%d", i), lines...)))
	}
	require.Equal(t, []string{"01 11:00-01 11:30", "02 00:00-03 00:00", "03 15:30-03 16:00"},
		shown(t, c, "2026-12-01T00:00:00+05:30", "2026-12-08T00:00:00+05:30"))
	require.Equal(t, []string{"17 15:30-17 16:00"}, shown(t, c, "2026-12-08T00:00:00+05:30", "2026-12-20T00:00:00+05:30"))

	require.NoError(t, c.Delete(t.Context(), m))
	require.NoError(t, c.Delete(t.Context(), m), "again")
	_, err = stored(t, c, m)
	require.ErrorIs(t, err, ErrNotFound)

	// Nothing of the owner is overwritten or deleted.
	require.Equal(t, http.StatusCreated, calendartest.Put(t, base, collection+"mtg_1.ics", foreign("mine", "DTSTART:20261201T053000Z", "DURATION:PT30M")))
	require.ErrorIs(t, c.Put(t.Context(), m), ErrConflict)
	require.ErrorIs(t, c.Delete(t.Context(), m), ErrConflict)
	e = must.Get(stored(t, c, m))(t)
	require.Equal(t, "mine", e.uid)

	wrong := *c
	wrong.Password = "wrong"
	require.ErrorIs(t, wrong.Put(t.Context(), m), ErrCredentials)
	_, err = wrong.Busy(t.Context(), at(t, "2026-12-01T00:00:00Z"), at(t, "2026-12-02T00:00:00Z"))
	require.ErrorIs(t, err, ErrCredentials)
	nowhere := *c
	nowhere.URL = base + "/asha/nothing/"
	require.ErrorIs(t, nowhere.Put(t.Context(), m), ErrNotFound)

	for _, from := range []string{"", "/", "/asha/", collection, strings.TrimSuffix(collection, "/")} {
		c.URL = base + from
		if from == strings.TrimSuffix(collection, "/") {
			continue // Radicale redirects it, others do not have it
		}
		found, err := c.Discover(t.Context())
		require.NoError(t, err, from)
		require.Equal(t, []Collection{{base + collection, "Work 🗓"}}, found.Calendars, from)
	}
	_, err = wrong.Discover(t.Context())
	require.ErrorIs(t, err, ErrCredentials)
}

func TestCalDAV(t *testing.T) {
	t.Parallel()
	t.Run("Radicale", func(t *testing.T) {
		t.Parallel()
		base := calendartest.Radicale(t)
		exercise(t, base)
		// The owner moved the event to another place: it is not made twice.
		m := meeting(t, 3)
		m.ID = "mtg_2"
		require.Equal(t, http.StatusCreated, calendartest.Put(t, base, collection+"moved.ics", string(m.Object)))
		require.ErrorIs(t, open(t, base).Put(t.Context(), m), ErrConflict)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		exercise(t, serve(t, newMemory()))
	})
}

// TestLostAnswers: every request is done and its answer lost, once. The calendar has
// one event afterwards, or none.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	server := newMemory()
	base := serve(t, server)
	for lost := range 6 {
		var n atomic.Int32
		c := open(t, lossy(t, base, func(*http.Request) bool { return int(n.Add(1)) == lost+1 }))
		again := func(f func(context.Context, Meeting) error, m Meeting) {
			err := f(t.Context(), m)
			if err != nil {
				require.ErrorIs(t, err, ErrTemporary)
				require.NoError(t, f(t.Context(), m))
			}
		}
		again(c.Put, meeting(t, 0))
		again(c.Put, meeting(t, 1))
		e := must.Get(stored(t, open(t, base), meeting(t, 0)))(t)
		require.Equal(t, 1, e.sequence)
		require.Len(t, server.objects, 1)
		again(c.Delete, meeting(t, 1))
		require.Empty(t, server.objects)
		require.GreaterOrEqual(t, int(n.Load()), 6)
	}
	require.Equal(t, 2*6, server.puts, "an event that is there already is not written again")
}

// TestHostile: a server that does not behave costs little time and memory, is never
// believed, and nothing that it says is repeated.
func TestHostile(t *testing.T) {
	t.Parallel()
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address was asked") }))
	t.Cleanup(private.Close)
	multi := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = w.Write([]byte(`<multistatus xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">` + body + `</multistatus>`))
		}
	}
	data := func(object string) string {
		return "<response><propstat><prop><c:calendar-data>" + object + "</c:calendar-data></prop><status>HTTP/1.1 200 OK</status></propstat></response>"
	}
	daily := func(rule string) http.HandlerFunc {
		return multi(strings.Repeat(data(foreign("x", "DTSTART:19700101T000000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY"+rule)), 400))
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret words", code) }
	}
	for name, h := range map[string]struct {
		serve                         http.HandlerFunc
		busy, put, deleted, discovers error
	}{
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusMultiStatus)
			for range 100 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 100_000)))
			}
		}, ErrTooMuch, nil, ErrForbidden, ErrTooMuch},
		"many events":    {multi(strings.Repeat(data(""), maxEvents+1)), ErrTooMuch, nil, ErrForbidden, ErrNotFound},
		"many busy":      {daily(""), ErrTooMuch, nil, ErrForbidden, ErrNotFound},
		"endless rules":  {daily(";BYMONTH=2;BYMONTHDAY=30;COUNT=9"), ErrTooMuch, nil, ErrForbidden, ErrNotFound},
		"broken XML":     {multi("<response>"), ErrTemporary, nil, ErrForbidden, ErrTemporary},
		"broken events":  {multi(data("BEGIN:VCALENDAR\nA;B=C")), nil, nil, ErrForbidden, ErrNotFound},
		"a page":         {status(200), ErrNotFound, nil, ErrConflict, ErrNotFound},
		"always changed": {status(412), ErrForbidden, ErrForbidden, ErrForbidden, ErrForbidden},
		"busy itself":    {status(503), ErrTemporary, ErrTemporary, ErrTemporary, ErrTemporary},
		"too often":      {status(429), ErrTemporary, ErrTemporary, ErrTemporary, ErrTemporary},
		"full":           {status(507), ErrForbidden, ErrForbidden, ErrForbidden, ErrForbidden},
		"private redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, private.URL, http.StatusTemporaryRedirect)
		}, ErrNotFound, ErrForbidden, ErrForbidden, ErrAddress},
		"home elsewhere": {multi(`<response><propstat><prop><current-user-principal><href>` + private.URL +
			`</href></current-user-principal></prop><status>HTTP/1.1 200 OK</status></propstat></response>`), nil, nil, ErrForbidden, ErrNotFound},
		"redirects in a circle": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/x")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, ErrNotFound, ErrForbidden, ErrForbidden, ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, serve(t, h.serve))
			check := func(what string, want, err error) {
				t.Helper()
				if want == nil {
					require.NotErrorIs(t, err, context.DeadlineExceeded, what)
					return
				}
				require.ErrorIs(t, err, want, what)
				require.NotContains(t, err.Error(), "secret", what)
				require.NotContains(t, err.Error(), "127.0.0.1", what)
			}
			_, err := c.Busy(t.Context(), at(t, "2026-12-01T00:00:00Z"), at(t, "2026-12-31T00:00:00Z"))
			check("busy", h.busy, err)
			check("put", h.put, c.Put(t.Context(), meeting(t, 0)))
			check("delete", h.deleted, c.Delete(t.Context(), meeting(t, 0)))
			_, err = c.Discover(t.Context())
			check("discover", h.discovers, err)
		})
	}
}

// TestVersions: a server that gives no version, a weak one, or another one each time.
func TestVersions(t *testing.T) {
	t.Parallel()
	for name, etag := range map[string]func(string) string{
		"none": func(string) string { return "" }, "weak": func(s string) string { return "W/" + s },
	} {
		server := newMemory()
		c := open(t, serve(t, tagged(server, etag)))
		require.NoError(t, c.Put(t.Context(), meeting(t, 0)), name)
		require.NoError(t, c.Put(t.Context(), meeting(t, 1)), name)
		require.Equal(t, 2, server.puts, name)
		require.NoError(t, c.Delete(t.Context(), meeting(t, 1)), name)
		require.Empty(t, server.objects, name)
	}
	server := newMemory()
	c := open(t, serve(t, tagged(server, func(string) string { return `"wrong"` })))
	require.NoError(t, c.Put(t.Context(), meeting(t, 0)))
	require.ErrorIs(t, c.Put(t.Context(), meeting(t, 1)), ErrTemporary, "it is tried a few times")
	require.ErrorIs(t, c.Delete(t.Context(), meeting(t, 1)), ErrTemporary)
	require.Equal(t, 1, server.puts)
}

// tagged changes the versions that a server gives.
func tagged(h http.Handler, etag func(string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if old := rec.Header().Get("ETag"); old != "" {
			w.Header().Set("ETag", etag(old))
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// TestSlow: a server that never ends its answer holds nobody longer than the client's time.
func TestSlow(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusMultiStatus)
		w.(http.Flusher).Flush()
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over) })
	c := open(t, base)
	c.Client = outbound.New(outbound.Options{AllowPrivate: true, Timeout: 200 * time.Millisecond})
	_, err := c.Busy(t.Context(), at(t, "2026-12-01T00:00:00Z"), at(t, "2026-12-31T00:00:00Z"))
	require.ErrorIs(t, err, ErrTemporary)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Put(ctx, meeting(t, 0)), context.Canceled)
}

// TestAddresses: the password goes to the site that its owner named, over TLS.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://dav.example.org/cal": true, "http://127.0.0.1:5232/": true, "http://localhost/": true,
		"http://dav.example.org/": false, "ftp://dav.example.org/": false, "https://a:b@dav.example.org/": false, "https:///x": false, "dav.example.org": false,
		"": false, "https://dav.example.org/?x=1": false, "https://dav.example.org/#x": false, "https://dav.example.org/" + strings.Repeat("x", 2000): false,
	} {
		_, err := parse(address)
		require.Equal(t, ok, err == nil, address)
	}
	start := must.Get(parse("https://dav.example.org/"))(t)
	s := &search{start: start}
	for href, ok := range map[string]bool{
		"/cal/": true, "https://p42-dav.example.org/1/": true, "https://dav.example.org:8443/": true, "../x": true,
		"http://dav.example.org/": false, "https://dav.example.com/": false, "https://example.org.evil.example/": false, "//evil.example/": false,
		"javascript:x": false, "": false, "https://user@dav.example.org/": false,
	} {
		_, is := s.resolve(start, hrefs{[]string{href}})
		require.Equal(t, ok, is, href)
	}
	// A client for strangers dials no private address, whatever the owner writes.
	c := open(t, "http://127.0.0.1:1")
	c.Client = outbound.New(outbound.Options{Timeout: Timeout, MaxBody: MaxBody})
	for _, address := range []string{"http://127.0.0.1:1/", "https://10.0.0.1/", "https://169.254.169.254/", "https://localhost/"} {
		c.URL = address
		_, err := c.Busy(t.Context(), time.Now(), time.Now())
		require.ErrorIs(t, err, ErrAddress, address)
		_, err = c.Discover(t.Context())
		require.ErrorIs(t, err, ErrAddress, address)
	}
	for _, id := range []string{"", "../x", "a/b", "a.b", "a%2fb", "ä"} {
		require.Error(t, c.Put(t.Context(), Meeting{ID: id}), id)
	}
	require.False(t, errors.Is(ErrAddress, ErrTemporary))
}

// TestMails: the addresses of the principal say what its owner declined.
func TestMails(t *testing.T) {
	t.Parallel()
	given := []string{"/principals/asha", "mailto:Asha@example.org", "mailto:x", "mailto:a@b.c,d@e.f", "urn:uuid:1"}
	require.Equal(t, []string{"asha@example.org"}, mails(hrefs{given}))
}

// Recurring events that a server leaves out of its own time range are read all the same, and none twice. A server without filters by
// property is read as before.
func TestBusy_LeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		partial, refuses bool
		want             []string
	}{
		"complete": {false, false, []string{"24 10:00-24 11:00", "24 14:30-24 15:30", "25 09:00-25 10:00"}},
		"partial":  {true, false, []string{"24 10:00-24 11:00", "24 14:30-24 15:30", "25 09:00-25 10:00"}},
		"refuses":  {true, true, []string{"24 10:00-24 11:00", "25 09:00-25 10:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			m.partial, m.refuses = c.partial, c.refuses
			base := serve(t, m)
			for n, lines := range [][]string{
				{"DTSTART:20261124T043000Z", "DURATION:PT1H"},
				{"DTSTART;TZID=Europe/Berlin:20261027T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=5"},
				{"DTSTART:20261028T033000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY"},
			} {
				place := fmt.Sprintf("%s%d.ics", collection, n)
				require.Equal(t, http.StatusCreated, calendartest.Put(t, base, place, foreign(fmt.Sprint(n, "@x"), lines...)))
			}
			require.Equal(t, c.want, shown(t, open(t, base), "2026-11-23T00:00:00Z", "2026-11-29T00:00:00Z"))
		})
	}
}
