package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	netmail "net/mail"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node"
	"stoa/node/out/calendar/calendartest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// An outside is what a node does with the world outside: a calendar server behind a proxy, and a mail server
// that keeps what it takes. At a chosen point it kills the node, and starts it again.
type outside struct {
	t       *testing.T
	node    *server
	mu      sync.Mutex // guards at and letters
	at      string
	letters map[string][][]byte // what was taken, by Message-ID
}

// Points at which the node is killed.
const (
	beforeEvent, afterEvent = "before the event", "after the event"
	beforeMail, afterMail   = "before the mail", "after the mail"
)

// reaches kills the node, if this is the chosen point, and reports whether it did.
func (o *outside) reaches(at string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at != at {
		return false
	}
	o.at = ""
	o.node.kill()
	o.node.start()
	return true
}

func (o *outside) choose(at string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = at
}

// calendar starts a proxy before a calendar server.
func (o *outside) calendar(real string) string {
	to := must.Get(url.Parse(real))(o.t)
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change := r.Method == http.MethodPut || r.Method == http.MethodDelete
		if change && o.reaches(beforeEvent) {
			return
		}
		if change { // also when the node that asks is dead by then
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, r)
		if change && o.reaches(afterEvent) {
			return
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	o.t.Cleanup(s.Close)
	return s.URL
}

// mail starts a mail server.
func (o *outside) mail() string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(o.t)
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return taker{o}, nil }))
	s.Domain = "mail.example"
	go func() { _ = s.Serve(l) }()
	o.t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

type taker struct{ *outside }

func (taker) Mail(string, *smtp.MailOptions) error { return nil }
func (taker) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (taker) Reset()                               {}
func (taker) Logout() error                        { return nil }

func (o taker) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil || o.reaches(beforeMail) {
		return smtp.ErrDataReset
	}
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	o.mu.Lock()
	id := m.Header.Get("Message-Id")
	o.letters[id] = append(o.letters[id], raw)
	o.mu.Unlock()
	o.reaches(afterMail)
	return nil
}

// taken returns how many different letters were taken. One that came twice is the same each time.
func (o *outside) taken() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, all := range o.letters {
		for _, again := range all[1:] {
			require.Equal(o.t, string(all[0]), string(again), id)
		}
	}
	return len(o.letters)
}

var ticketInMail = regexp.MustCompile(`/meeting-link\?ticket=(stoa_read_\S+)`)

// TestCrash_Meeting kills a process as a power cut would while it approves, moves and cancels a meeting: before
// and after the calendar server has an event, before and after the mail server has an invitation. In the end
// each step is one event at its time, and one letter.
func TestCrash_Meeting(t *testing.T) {
	t.Parallel()
	real := calendartest.Radicale(t)
	o := &outside{t: t, letters: map[string][][]byte{}}
	address := o.calendar(real)
	o.node = newServerProcess(t, freePorts(t, 1), "--smtp", o.mail(), "--smtp-security", "none", "--mail-from", "stoa@node.example", "--no-probes")
	base := o.node.url
	admin := must.Get(node.OpenAdmin(t.Context(), node.Config{Data: o.node.data}, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { admin.Close() })
	must.Get(putProfile(t.Context(), admin, []byte(`{"handle":"asha","name":"Asha","kind":"person"}`)))(t)
	made := must.Get(node.Do(t.Context(), admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: "asha", Name: "test",
		Scopes: protocol.OwnerScopes}}))(t)

	// call calls an operation until it is answered.
	call := func(token, op, key string, args map[string]any, into any) {
		t.Helper()
		c := must.Get(client.New(base, client.Options{Token: token}))(t)
		var last error
		require.Eventually(t, func() bool {
			res, err := c.Do(t.Context(), client.Call{Operation: op, IdempotencyKey: key, Args: args})
			if last = err; err == nil {
				require.NoError(t, json.Unmarshal(res.Body, into))
			}
			return err == nil
		}, time.Minute, 50*time.Millisecond, "%s: %v", op, &last)
	}
	var none map[string]any
	call(made.Secret, "put_meeting_settings", "", map[string]any{"acceptingMeetingRequests": true}, &none)
	var account protocol.CalendarAccount
	call(made.Secret, "connect_calendar", "", map[string]any{"address": address, "user": calendartest.User, "password": calendartest.Password}, &account)
	require.Eventually(t, func() bool {
		call(made.Secret, "get_calendar", "", map[string]any{"id": account.ID}, &account)
		return !account.Checking && account.Writes != nil
	}, time.Minute, 50*time.Millisecond)

	letters := 0
	for n := range storagetest.Rounds(t, 4) {
		at := time.Now().UTC().Add(time.Duration(48+n) * time.Hour).Truncate(time.Minute)
		var asked protocol.MeetingReceipt
		call("", "request_meeting", "", map[string]any{"handle": "asha", "requester": "Ravi", "email": fmt.Sprintf("ravi%d@example.org", n), "purpose": "Yarn.",
			"durationMin": 30, "startsAt": at.Format(time.RFC3339)}, &asked)
		letters++
		require.Eventually(t, func() bool { return o.taken() == letters }, time.Minute, 20*time.Millisecond)
		call("", "use_meeting_link", "", map[string]any{"ticket": o.ticket(asked.Request.ID), "do": "confirm"}, &none)

		id := asked.Request.ID
		step := func(kill, op, key string, args map[string]any) {
			t.Helper()
			o.choose(kill)
			args["id"] = id
			var m protocol.OwnMeeting
			call(made.Secret, op, key, args, &m)
			require.Eventually(t, func() bool {
				call(made.Secret, "get_own_meeting", "", map[string]any{"id": id}, &m)
				return m.Mail == protocol.MeetingMailSent && (m.Calendar.State == protocol.CalendarWritten || m.Calendar.State == protocol.CalendarRemoved)
			}, time.Minute, 20*time.Millisecond, "%s, killed %s: %+v", op, kill, &m)
			letters++
			require.Equal(t, letters, o.taken(), "%s, killed %s", op, kill)
			o.mu.Lock()
			require.Empty(t, o.at, "it was killed")
			o.mu.Unlock()
			object, there := calendartest.Objects(t, real, calendartest.Collection)[calendartest.Collection+id+".ics"]
			require.Equal(t, m.State == protocol.MeetingApproved, there)
			require.LessOrEqual(t, len(calendartest.Objects(t, real, calendartest.Collection)), 1)
			if there {
				require.Contains(t, object, fmt.Sprintf("\nSEQUENCE:%d\r", m.Sequence))
				require.Contains(t, object, "\nDTSTART:"+m.StartsAt.UTC().Format("20060102T150405Z")+"\r")
			}
		}
		step(afterEvent, "approve_meeting", "", map[string]any{})
		for i, kill := range []string{beforeEvent, afterEvent, beforeMail, afterMail} {
			step(kill, "move_meeting", fmt.Sprintf("move-%d-%d", n, i), map[string]any{"startsAt": at.Add(time.Duration(i+1) * time.Hour).Format(time.RFC3339)})
		}
		step(afterEvent, "cancel_own_meeting", "", map[string]any{})
	}
	o.node.kill()
	out, errs, code := stoa(t, "", "admin", "check", "--data", o.node.data)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "ok\n", out)
}

// ticket returns the ticket that confirms a request, from its mail.
func (o *outside) ticket(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for message, all := range o.letters {
		if !strings.Contains(message, id) {
			continue
		}
		text := strings.ReplaceAll(strings.ReplaceAll(string(all[0]), "=\r\n", ""), "=3D", "=")
		if found := ticketInMail.FindStringSubmatch(text); found != nil {
			return found[1]
		}
	}
	o.t.Fatal("no mail with a link")
	return ""
}
