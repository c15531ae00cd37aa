// Package mail sends letters to one recipient each by SMTP submission (RFC 6409), signed with DKIM
// (RFC 6376) when there is a key, and takes answers and bounces from the operator's mail server by
// LMTP (RFC 2033). go-mail writes the MIME, go-msgauth signs the finished bytes, go-smtp sends them
// unchanged. It makes one attempt: the caller decides about retries. No error contains an address or
// the server's text, since servers repeat addresses.
package mail

import (
	"cmp"
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

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"stoa/protocol"
)

const timeout = 30 * time.Second // for one whole exchange

// How the connection is protected.
const (
	TLS      = "tls"      // from the first byte (port 465)
	StartTLS = "starttls" // before anything is sent (port 587); without it nothing is sent
	Plain    = "none"     // unprotected; only to this machine
)

// A Message is one letter. ID is the same for each attempt, and so is all of the letter except for
// the time in its DKIM signature.
type Message struct {
	ID, To, Subject string
	Text            string    // which says everything that HTML and Calendar say
	HTML            string    // the same for programs that show it; "" for none
	Calendar        *Calendar // an invitation; nil for none
	Name            string    // display name of the sender; "" for Sender.Name
	ReplyTo         string    // bare address; "" for none
	Date            time.Time // the same for each attempt; zero for now
	Bounce          string    // id that comes back with a bounce, see [Return]; "" for none
}

// A Calendar is an invitation in a letter (iMIP, RFC 6047).
type Calendar struct {
	Method string // of Object: REQUEST or CANCEL
	Object []byte // iCalendar
}

// ErrRecipient is in the error of a letter whose recipient does not exist or takes no mail: nothing
// else can be sent there either.
var ErrRecipient = errors.New("no such mailbox")

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
	ReturnKey      []byte      // secret of the addresses of bounces and answers; nil: both come to From
	TLSConfig      *tls.Config // nil for the system's roots
	Now            func() time.Time
}

// Send sends one letter. A permanent refusal is a *protocol.Error that is not temporary.
func (s *Sender) Send(ctx context.Context, m Message) error {
	raw, err := s.Compose(m)
	if err != nil {
		return err
	}
	return s.Post(ctx, m, raw)
}

// Post sends what Compose returned for a letter, to m.To, as it is. Its errors are those of Send.
func (s *Sender) Post(ctx context.Context, m Message, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rejected, err := s.submit(ctx, m, raw)
	if e, ok := errors.AsType[*smtp.SMTPError](err); ok {
		switch {
		case rejected && hard(e.Code, e.EnhancedCode):
			return protocol.Errorf(protocol.InvalidRequest, "the mail server refused the recipient: %d: %w", e.Code, ErrRecipient)
		case e.Code >= 500:
			return protocol.Errorf(protocol.InvalidRequest, "the mail server refused the message: %d", e.Code)
		}
		return fmt.Errorf("the mail server answered %d", e.Code)
	}
	switch _, garbled := errors.AsType[textproto.ProtocolError](err); {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("the mail server did not accept the message in time: %w", ctx.Err())
	case garbled: // its text comes from the server
		return errors.New("the mail server answered with something that is not SMTP")
	case err != nil:
		return fmt.Errorf("the mail server could not be used: %w", err)
	}
	return nil
}

// Check connects to the server as for a letter, signs in, and sends nothing.
func (s *Sender) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := s.signIn(ctx)
	if err != nil {
		if _, garbled := errors.AsType[textproto.ProtocolError](err); garbled {
			err = errors.New("it answers with something that is not SMTP")
		}
		return cmp.Or(ctx.Err(), err)
	}
	defer c.Close()
	_ = c.Quit() // it took what was asked
	return nil
}

// signIn connects to the server, and signs in where there is a user.
func (s *Sender) signIn(ctx context.Context) (*smtp.Client, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.CommandTimeout, c.SubmissionTimeout = timeout, timeout
	if s.User != "" {
		// The configuration is wrong, not the letter: the letter is retried.
		if err := c.Auth(sasl.NewPlainClient("", s.User, s.Password)); err != nil {
			c.Close()
			return nil, errors.New("the mail server refused the user or the password")
		}
	}
	return c, nil
}

// submit sends a letter. rejected says that the server refused its recipient.
func (s *Sender) submit(ctx context.Context, m Message, raw []byte) (rejected bool, err error) {
	c, err := s.signIn(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	from := s.From
	if m.Bounce != "" {
		from = s.Return().Address(m.Bounce)
	}
	if err := c.Mail(from, nil); err != nil {
		return false, err
	}
	if err := c.Rcpt(m.To, nil); err != nil {
		return true, err
	}
	w, err := c.Data()
	if err != nil {
		return false, err
	}
	if _, err := w.Write(raw); err != nil {
		return false, err
	}
	if err := w.Close(); err != nil {
		return false, err
	}
	_ = c.Quit() // the letter was accepted already
	return false, nil
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

// Return makes and reads the addresses to which bounces of the letters and answers to them come.
func (s *Sender) Return() Return { return Return{s.From, s.ReturnKey} }

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
