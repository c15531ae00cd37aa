package mail

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// box is a mail server's session that keeps what it gets.
type box struct {
	got    chan string
	answer error
}

func (b box) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (box) Reset()                                        {}
func (box) Logout() error                                 { return nil }
func (box) Mail(string, *smtp.MailOptions) error          { return nil }
func (b box) Rcpt(string, *smtp.RcptOptions) error        { return b.answer }
func (b box) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	b.got <- string(raw)
	return err
}

func server(t *testing.T, answer error) (addr string, got chan string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	got = make(chan string, 1)
	s := smtp.NewServer(box{got, answer})
	s.ErrorLog = log.New(io.Discard, "", 0)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String(), got
}

// TestSend sends over a real server; the DKIM signature verifies over what came.
func TestSend(t *testing.T) {
	t.Parallel()
	addr, got := server(t, nil)
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s := &Sender{Server: addr, Security: Plain, From: "stoa@n1.example", Name: "Nöde", Host: "n1.example", DKIM: private, Selector: "s1"}
	require.NoError(t, s.Send(t.Context(), Message{ID: "ntc_1", To: "asha@example.org", Subject: "Someone wrote to @asha", Text: "नमस्ते\n.\nline\n"}))
	raw := <-got
	for _, want := range []string{
		"To: <asha@example.org>", "Auto-Submitted: auto-generated", "Message-ID: <ntc_1@n1.example>", "Subject: Someone wrote to @asha",
	} {
		require.Contains(t, raw, want)
	}
	checked := must.Get(dkim.VerifyWithOptions(strings.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		require.Equal(t, "s1._domainkey.n1.example", name)
		return []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}, nil
	}}))(t)
	require.Len(t, checked, 1)
	require.NoError(t, checked[0].Err)
}

// TestSend_Refusals: no error tells the address, a refusal for good is final, and
// without the wanted protection nothing is sent.
func TestSend_Refusals(t *testing.T) {
	t.Parallel()
	for code, final := range map[int]bool{550: true, 451: false} {
		addr, _ := server(t, &smtp.SMTPError{Code: code, Message: "no asha@example.org here"})
		s := &Sender{Server: addr, Security: Plain, From: "stoa@n1.example", Host: "n1.example"}
		err := s.Send(t.Context(), Message{ID: "1", To: "asha@example.org", Subject: "s", Text: "t"})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "asha")
		require.Equal(t, final, protocol.CodeOf(err) == protocol.InvalidRequest)
	}
	addr, got := server(t, nil)
	s := &Sender{Server: addr, Security: StartTLS, From: "stoa@n1.example", Host: "n1.example"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.Error(t, s.Send(ctx, Message{ID: "1", To: "asha@example.org", Subject: "s", Text: "t"}), "the server offers no TLS")
	require.Empty(t, got)
}

// TestCompose_Headers: nothing in a letter begins another header line.
func TestCompose_Headers(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "stoa@n1.example", Host: "n1.example"}
	for _, m := range []Message{
		{ID: "1", To: "a@example.org", Subject: "x\r\nBcc: b@example.org"},
		{ID: "1", To: "a@example.org\nBcc: b@example.org", Subject: "x"},
		{ID: "1\r\nX: y", To: "a@example.org", Subject: "x"},
	} {
		_, err := s.Compose(m)
		require.Error(t, err)
	}
	raw := must.Get(s.Compose(Message{ID: "1", To: "a@example.org", Subject: "x", Text: "Bcc: b@example.org\r\n"}))(t)
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	require.NotContains(t, string(head), "Bcc")
}

// TestSend_Hostile: a server that says a little now and then, nothing, or no SMTP
// holds nobody longer than the letter's own time, and none of its text is kept.
func TestSend_Hostile(t *testing.T) {
	t.Parallel()
	for name, talk := range map[string]func(net.Conn, <-chan struct{}){
		"silent": func(_ net.Conn, over <-chan struct{}) { <-over },
		"drips": func(c net.Conn, over <-chan struct{}) {
			for {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
					if _, err := c.Write([]byte("220-asha@example.org\r\n")); err != nil {
						return
					}
				}
			}
		},
		"no SMTP": func(c net.Conn, over <-chan struct{}) { c.Write([]byte("asha@example.org\r\n")); <-over },
	} {
		for _, security := range []string{Plain, StartTLS, TLS} {
			t.Run(name+" "+security, func(t *testing.T) {
				t.Parallel()
				l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
				over := make(chan struct{})
				t.Cleanup(func() { close(over); l.Close() })
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						go func() { defer c.Close(); talk(c, over) }()
					}
				}()
				s := &Sender{Server: l.Addr().String(), Security: security, From: "stoa@n1.example", Host: "n1.example"}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- s.Send(ctx, Message{ID: "1", To: "asha@example.org", Subject: "s", Text: "t"}) }()
				select {
				case err := <-done:
					require.Error(t, err)
					require.NotContains(t, err.Error(), "asha")
					require.NotEqual(t, protocol.InvalidRequest, protocol.CodeOf(err), "it is tried again")
				case <-time.After(time.Minute):
					t.Fatal("the letter's time is over, and it still waits")
				}
			})
		}
	}
}
