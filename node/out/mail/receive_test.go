package mail

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// receiving serves a receiver until the test ends.
func receiving(t *testing.T, l net.Listener, r *Receiver) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
}

// TestReceiver takes what is for the node, and nothing else; what could not be stored
// is sent again.
func TestReceiver(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got, full := make(chan Incoming, 10), false
	back := Return{"calendar@node.example", []byte("secret")}
	receiving(t, l, &Receiver{Host: "node.example", From: back.From, Return: back, Handle: func(_ context.Context, in Incoming) error {
		if full {
			return errors.New("disk full of secrets")
		}
		got <- in
		return nil
	}})
	conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	c := smtp.NewClientLMTP(conn)
	defer c.Close()
	send := func(text string, to ...string) error {
		if err := c.Mail("", nil); err != nil {
			return err
		}
		for _, at := range to {
			if err := c.Rcpt(at, nil); err != nil {
				return errors.Join(err, c.Reset())
			}
		}
		w, err := c.Data()
		if err != nil {
			return err
		}
		_, _ = w.Write([]byte(text))
		return w.Close()
	}
	require.NoError(t, send("Subject: yes\r\n\r\nx\r\n", "Calendar@NODE.example"))
	require.Equal(t, Incoming{Raw: []byte("Subject: yes\r\n\r\nx\r\n")}, <-got)
	require.NoError(t, send("x: y\r\n\r\n", strings.ToUpper(back.Address("mtg_1.0"))))
	require.Equal(t, "mtg_1.0", (<-got).Bounced)
	require.NoError(t, send("x: y\r\n\r\n", strings.ToUpper(back.Answers("mtg_1.0"))))
	require.Equal(t, Incoming{Answered: "mtg_1.0", Raw: []byte("x: y\r\n\r\n")}, <-got)
	other := Return{back.From, []byte("another secret")}
	for _, to := range []string{
		"asha@node.example", "calendar@other.example", "calendar+b-mtg_1.0-0000000000000000@node.example", other.Address("mtg_1.0"), "calendar+b-@node.example",
		other.Answers("mtg_1.0"), strings.Replace(back.Address("mtg_1.0"), "+b-", "+a-", 1), strings.Replace(back.Answers("mtg_1.0"), "+a-", "+b-", 1),
		"calendar+b-mtg_1.0-@node.example",
	} {
		err := send("x", to)
		require.ErrorContains(t, err, "no such mailbox here", to)
	}
	full = true
	err = send("x: y\r\n\r\n", back.From)
	require.ErrorContains(t, err, "try again later")
	require.NotContains(t, err.Error(), "secrets")
	full = false
	require.NoError(t, send("x: y\r\n\r\n", back.From))
	<-got
	require.Error(t, send(strings.Repeat(strings.Repeat("x", 998)+"\r\n", MaxIncoming/1000+1), back.From), "too long")
	require.Empty(t, got)
}

// TestReceiver_Stops: it ends with its context, also before it began, and not before
// the mail that it handles.
func TestReceiver_Stops(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, new(Receiver).Serve(over, l))

	l = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	began, stored, done := make(chan struct{}), false, make(chan error, 1)
	r := &Receiver{Host: "node.example", From: "a@node.example", Handle: func(ctx context.Context, _ Incoming) error {
		close(began)
		<-ctx.Done()
		stored = true
		return nil
	}}
	go func() { done <- r.Serve(ctx, l) }()
	conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	c := smtp.NewClientLMTP(conn)
	defer c.Close()
	require.NoError(t, c.Mail("", nil))
	require.NoError(t, c.Rcpt(r.From, nil))
	w := must.Get(c.Data())(t)
	go w.Close()
	<-began
	cancel()
	require.NoError(t, <-done)
	require.True(t, stored)
}

func TestReturn(t *testing.T) {
	t.Parallel()
	r := Return{"Stoa@n1.example", []byte("k")}
	id, ok := r.ID(r.Address("mtg_01jd0000000000000000000000"))
	require.True(t, ok)
	require.Equal(t, "mtg_01jd0000000000000000000000", id)
	none := Return{r.From, nil}
	require.Equal(t, none.From, none.Answers("mtg_1"), "without a key everything comes to the node's own address")
	_, ok = none.Answered("stoa+a-mtg_1-" + none.mac("+a-", "mtg_1") + "@n1.example")
	require.False(t, ok, "and nobody can make another")
	for _, id := range []string{"", "a-b", "A", "a b", "ä", strings.Repeat("a", 33), "a@b", "a\r\nb"} {
		require.Equal(t, r.From, r.Address(id), "an id that does not fit comes back to the node's own address")
	}
	long := Return{strings.Repeat("l", 30) + "@n1.example", []byte("k")}
	require.Equal(t, long.From, long.Address(strings.Repeat("a", 32)), "a local part has 64 bytes at most")
}

const report = "From: MAILER-DAEMON@mx.example\r\nTo: x\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSorry.\r\n" +
	"--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; ravi@example.org\r\n" +
	"Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 secret\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\n--b--\r\n"

func TestReadBounce(t *testing.T) {
	t.Parallel()
	for was, becomes := range map[string]Bounce{
		"5.1.1": {"5.1.1", true}, "5.1.10": {"5.1.10", true}, "5.2.1": {"5.2.1", true}, "5.1.1 (bad)": {"5.1.1", true},
		"5.2.2": {"5.2.2", false}, "5.7.1": {"5.7.1", false}, "5.1.8": {"5.1.8", false}, "4.4.1": {"5.1.1", true}, "5.1.99999999999": {"5.1.999", true},
	} {
		b, ok := ReadBounce([]byte(strings.Replace(report, "Status: 5.1.1", "Status: "+was, 1)))
		require.True(t, ok, was)
		require.Equal(t, becomes, b, was)
	}
	exim := strings.NewReplacer("Status: 5.1.1", "Status: 5.0.0", "message/delivery-status", "message/global-delivery-status").Replace(report)
	b, ok := ReadBounce([]byte(exim))
	require.True(t, ok)
	require.Equal(t, Bounce{"5.1.1", true}, b, "what the next server said")
	b, ok = ReadBounce([]byte(strings.ReplaceAll(report, "\r\n", "\n")))
	require.True(t, ok && b.Hard)
	for name, mail := range map[string]string{
		"delayed":      strings.Replace(report, "Action: failed", "Action: delayed", 1),
		"delivered":    strings.Replace(report, "Action: failed", "Action: relayed", 1),
		"no report":    strings.Replace(report, "multipart/report", "multipart/mixed", 1),
		"read receipt": strings.Replace(report, "report-type=delivery-status", "report-type=disposition-notification", 1),
		"no boundary":  strings.Replace(report, "; boundary=b", "", 1),
		"no status":    strings.Replace(report, "message/delivery-status", "text/plain", 1),
		"no mail":      "x",
		"nothing":      "",
	} {
		_, ok := ReadBounce([]byte(mail))
		require.False(t, ok, name)
	}
}

func FuzzReadBounce(f *testing.F) {
	f.Add([]byte(report))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, ok := ReadBounce(raw); b.Hard && (!ok || !strings.HasPrefix(b.Status, "5.")) {
			t.Fatalf("%+v", b)
		}
	})
}
