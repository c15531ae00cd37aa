// Package mail sends plain-text letters to one recipient each by SMTP submission (RFC 6409),
// signed with DKIM (RFC 6376) when there is a key. go-mail writes the MIME, go-msgauth signs the
// finished bytes, go-smtp sends them unchanged. It makes one attempt: the caller decides about
// retries. No error contains an address or the server's text, since servers repeat addresses.
package mail

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	gomail "github.com/wneessen/go-mail"

	"stoa/protocol"
)

const timeout = 30 * time.Second // for one whole exchange

// How the connection is protected.
const (
	TLS      = "tls"      // from the first byte (port 465)
	StartTLS = "starttls" // before anything is sent (port 587); without it nothing is sent
	Plain    = "none"     // unprotected; only to this machine
)

// A Message is one letter. ID is the same for each attempt.
type Message struct{ ID, To, Subject, Text string }

// A Sender sends through one server. It is safe for concurrent use.
type Sender struct {
	Server         string // host:port
	Security       string // TLS, StartTLS or Plain
	User, Password string // "" for none
	From           string // bare address
	Name           string // display name of From
	Host           string // of the node, for message ids and the greeting
	DKIM           crypto.Signer
	Selector       string      // of the DKIM key
	TLSConfig      *tls.Config // nil for the system's roots
	Now            func() time.Time
}

// Send sends one letter. A permanent refusal is a *protocol.Error that is not temporary.
func (s *Sender) Send(ctx context.Context, m Message) error {
	raw, err := s.Compose(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = s.submit(ctx, m.To, raw)
	if e, ok := errors.AsType[*smtp.SMTPError](err); ok {
		if e.Code >= 500 {
			return protocol.Errorf(protocol.InvalidRequest, "the mail server refused the letter: %d", e.Code)
		}
		return fmt.Errorf("the mail server answered %d", e.Code)
	}
	switch _, garbled := errors.AsType[textproto.ProtocolError](err); {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("the mail server did not accept the letter in time: %w", ctx.Err())
	case garbled: // its text comes from the server
		return errors.New("the mail server answered with something that is not SMTP")
	case err != nil:
		return fmt.Errorf("the mail server could not be used: %w", err)
	}
	return nil
}

// Compose returns the letter as it is sent.
func (s *Sender) Compose(m Message) ([]byte, error) {
	if strings.ContainsAny(m.Subject+m.To+m.ID, "\r\n\x00") { // they would add a header line
		return nil, protocol.Errorf(protocol.InvalidRequest, "a header of the letter holds a line break")
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := errors.Join(msg.FromFormat(s.Name, s.From), msg.To(m.To)); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "an address of the letter is not valid")
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(s.now())
	msg.SetMessageIDWithValue(m.ID + "@" + s.Host)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("write the letter: %w", err)
	}
	if s.DKIM == nil {
		return raw.Bytes(), nil
	}
	_, domain, _ := strings.Cut(s.From, "@")
	var signed bytes.Buffer
	err := dkim.Sign(&signed, &raw, &dkim.SignOptions{
		Domain: domain, Selector: s.Selector, Signer: s.DKIM, Hash: crypto.SHA256,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		HeaderKeys: []string{"From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"},
	})
	if err != nil {
		return nil, fmt.Errorf("sign the letter: %w", err)
	}
	return signed.Bytes(), nil
}

func (s *Sender) submit(ctx context.Context, to string, raw []byte) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	c.CommandTimeout, c.SubmissionTimeout = timeout, timeout
	if s.User != "" {
		// The configuration is wrong, not the letter: the letter is retried.
		if err := c.Auth(sasl.NewPlainClient("", s.User, s.Password)); err != nil {
			return errors.New("the mail server refused the user or the password")
		}
	}
	if err := c.SendMail(s.From, []string{to}, bytes.NewReader(raw)); err != nil {
		return err
	}
	_ = c.Quit() // the letter was accepted already
	return nil
}

func (s *Sender) dial(ctx context.Context) (*smtp.Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Server)
	if err != nil {
		return nil, errors.New("no connection")
	}
	// A deadline on the connection would not be enough: the client moves it with each command, and
	// a server that is slow at every command would hold the letter for long.
	context.AfterFunc(ctx, func() { conn.Close() })
	host, _, _ := net.SplitHostPort(s.Server)
	config := s.TLSConfig.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName = host
	var c *smtp.Client
	switch s.Security {
	case TLS:
		c = smtp.NewClient(tls.Client(conn, config))
	case StartTLS:
		if c, err = smtp.NewClientStartTLS(conn, config); err != nil {
			conn.Close()
			return nil, fmt.Errorf("no protected connection: %w", err)
		}
	default:
		c = smtp.NewClient(conn)
	}
	if err := c.Hello(s.Host); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (s *Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// ReadPassword reads a password from a file, without the line break at the end.
func ReadPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if len(raw) > 4096 {
		return "", fmt.Errorf("%s is too long for a password", file)
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}
