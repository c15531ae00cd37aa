package mail

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/netutil"
)

// Bounds of what is received.
const (
	MaxIncoming   = 1 << 20 // bytes of a mail
	maxConns      = 20
	incomingIdle  = time.Minute
	incomingLines = 4000 // bytes of a line
)

// An Incoming is a mail that the operator's mail server handed over. Nothing in it is verified.
type Incoming struct {
	Bounced  string // id of the letter that came back; "" for an answer
	Answered string // id of the letter that is answered, whose reader knew its address; "" for a mail to From
	Raw      []byte
}

// A Receiver takes answers and bounces by LMTP. It is for the operator's own mail server on this
// machine, which has checked who may send what: there is no sign-in.
type Receiver struct {
	Host   string // name of the node, for the greeting
	From   string // address that answers come to
	Return Return
	// Handle stores a mail. The mail server keeps a mail for which it returns an error, and tries again.
	Handle func(ctx context.Context, in Incoming) error
}

// Serve takes mails until ctx is over or the listener fails, and closes the listener. It returns when
// no mail is being handled.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	var handling sync.WaitGroup
	defer handling.Wait()
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &incoming{Receiver: r, ctx: ctx, handling: &handling}, nil
	}))
	s.LMTP, s.Domain, s.MaxRecipients, s.MaxMessageBytes, s.MaxLineLength = true, r.Host, 10, MaxIncoming, incomingLines
	s.ReadTimeout, s.WriteTimeout = incomingIdle, incomingIdle
	s.ErrorLog = log.New(io.Discard, "", 0)                         // it would log what strangers send
	stop := context.AfterFunc(ctx, func() { s.Close(); l.Close() }) // s does not know a listener that it does not serve yet
	defer stop()
	err := s.Serve(netutil.LimitListener(l, maxConns))
	if ctx.Err() != nil || errors.Is(err, smtp.ErrServerClosed) {
		return nil
	}
	return err
}

// An incoming is one session of the mail server.
type incoming struct {
	*Receiver
	ctx      context.Context
	handling *sync.WaitGroup
	to       []Incoming // one for each recipient
}

func (*incoming) Mail(string, *smtp.MailOptions) error { return nil }
func (i *incoming) Reset()                             { i.to = nil }
func (*incoming) Logout() error                        { return nil }

// Rcpt accepts the node's address and those of its letters.
func (i *incoming) Rcpt(to string, _ *smtp.RcptOptions) error {
	if id, ok := i.Return.ID(to); ok {
		i.to = append(i.to, Incoming{Bounced: id})
		return nil
	}
	if id, ok := i.Return.Answered(to); ok {
		i.to = append(i.to, Incoming{Answered: id})
		return nil
	}
	if strings.EqualFold(to, i.From) {
		i.to = append(i.to, Incoming{})
		return nil
	}
	return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox here"}
}

// Data handles a mail for each of its recipients; the answer is the same for all.
func (i *incoming) Data(r io.Reader) error {
	i.handling.Add(1)
	defer i.handling.Done()
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for _, in := range i.to {
		in.Raw = raw
		if err := i.Handle(i.ctx, in); err != nil {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "not stored; try again later"}
		}
	}
	return nil
}
