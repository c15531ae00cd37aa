package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"stoa/node/out/mail"
	"stoa/node/room/account"
	"stoa/node/room/complaint"
	"stoa/node/room/credential"
	"stoa/node/room/meeting"
	"stoa/node/room/order"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// mailer returns the sender of mail: an SMTP server if one is configured, the log in
// development, otherwise nil.
func (n *Node) mailer(ctx context.Context, base *url.URL) (account.Mailer, error) {
	c := n.Config
	if c.SMTP == "" {
		if c.Dev {
			return printed{n.log}, nil
		}
		return nil, nil
	}
	s, err := c.sender()
	if err != nil {
		return nil, err
	}
	if s.Password, err = mail.ReadPassword(c.SMTPPassword); err != nil {
		return nil, fmt.Errorf("%w: smtp-password: %w", ErrConfig, err)
	}
	if n.lmtp != nil { // else nobody takes what comes to the addresses that it makes
		if s.ReturnKey, err = n.Keys.Random(ctx, credential.SecretMailReturn); err != nil {
			return nil, err
		}
	}
	s.Name, s.Host = c.name(base.Host), base.Hostname()
	return letters{s}, nil
}

// mailState says whether the node sends mail: off, log or smtp.
func (n *Node) mailState() string {
	switch n.Accounts.Mail.(type) {
	case nil:
		return "off"
	case printed:
		return "log"
	}
	return "smtp"
}

// sender returns what the settings say of mail, without the password and the node's names.
func (c Config) sender() (*mail.Sender, error) {
	s := &mail.Sender{Server: c.SMTP, Security: c.SMTPSecurity, User: c.SMTPUser, From: c.MailFrom, Selector: c.DKIMSelector}
	if c.DKIMKey == "" {
		return s, nil
	}
	var err error
	if s.DKIM, err = mail.ReadKey(c.DKIMKey); err != nil {
		return nil, fmt.Errorf("%w: dkim-key: %w", ErrConfig, err)
	}
	return s, nil
}

// CheckMail returns the DNS records by which receivers trust the node's mail, compared with what the
// settings need. lookup returns the TXT records of a name. The error is ErrConfig when the settings
// of mail are not complete.
func (c Config) CheckMail(ctx context.Context, lookup func(ctx context.Context, name string) ([]string, error)) ([]mail.Record, error) {
	if c.SMTP == "" {
		return nil, fmt.Errorf("%w: no mail is sent: give smtp and mail-from, as for serve", ErrConfig)
	}
	var faults []string
	c.mailFaults(func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) })
	if len(faults) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrConfig, strings.Join(faults, "; "))
	}
	s, err := c.sender()
	if err != nil {
		return nil, err
	}
	return s.CheckDNS(ctx, lookup), nil
}

// letters sends mail by SMTP.
type letters struct{ *mail.Sender }

func (l letters) Send(ctx context.Context, x account.Letter) error {
	return l.Sender.Send(ctx, mail.Message{ID: x.ID, To: x.To, Subject: x.Subject, Text: x.Text})
}

// complaintMail returns the sender of mail about complaints, nil on a node that sends no mail.
func (n *Node) complaintMail() complaint.Send {
	m := n.Accounts.Mail
	if m == nil {
		return nil
	}
	return func(ctx context.Context, id, to, subject, text string) error {
		return m.Send(ctx, account.Letter{ID: id, To: to, Subject: subject, Text: text})
	}
}

// orderMail returns the sender of mail about orders, nil on a node that sends no mail.
func (n *Node) orderMail() order.Send { return order.Send(n.complaintMail()) }

// meetingMail returns the sender of mail about meetings, nil on a node that sends no mail.
func (n *Node) meetingMail() meeting.Mailer {
	switch m := n.Accounts.Mail.(type) {
	case nil:
		return nil
	case letters:
		return meetingLetters(m)
	default:
		return plainLetters{m}
	}
}

// plainLetters sends mail about meetings as other mail, without calendars.
type plainLetters struct{ account.Mailer }

func (plainLetters) Answers(string) string                  { return "" }
func (plainLetters) Compose(meeting.Letter) ([]byte, error) { return nil, nil }
func (l plainLetters) Send(ctx context.Context, x meeting.Letter, _ []byte) error {
	return l.Mailer.Send(ctx, account.Letter{ID: x.ID, To: x.To, Subject: x.Subject, Text: x.Text})
}

// meetingLetters sends mail about meetings by SMTP.
type meetingLetters struct{ *mail.Sender }

func (l meetingLetters) Answers(id string) string { return l.Return().Answers(id) }

func (l meetingLetters) Compose(x meeting.Letter) ([]byte, error) {
	return l.Sender.Compose(message(x))
}

func (l meetingLetters) Send(ctx context.Context, x meeting.Letter, raw []byte) error {
	var err error
	if raw == nil {
		err = l.Sender.Send(ctx, message(x))
	} else {
		err = l.Post(ctx, message(x), raw)
	}
	if errors.Is(err, mail.ErrRecipient) {
		return fmt.Errorf("%w: %w", meeting.ErrMailbox, err)
	}
	return err
}

func message(x meeting.Letter) mail.Message {
	out := mail.Message{ID: x.ID, To: x.To, Subject: x.Subject, Text: x.Text, HTML: x.HTML, Name: x.From, Date: x.Date, Bounce: x.Bounce}
	if x.Method != "" {
		out.Calendar = &mail.Calendar{Method: x.Method, Object: x.Calendar}
	}
	return out
}

// printed logs mail instead of sending it. It is for development only, where the
// addresses belong to nobody.
type printed struct{ log *slog.Logger }

func (p printed) Send(_ context.Context, x account.Letter) error {
	p.log.Info("mail", "to", x.To, "subject", x.Subject, "text", x.Text)
	return nil
}

func (c Config) name(host string) string {
	if c.Name != "" {
		return c.Name
	}
	return host
}

// pushContact is whom push services may write to about the node (RFC 8292 §2.1): a mail address or an https URL.
func (c Config) pushContact(base string) string {
	if contact := strings.TrimPrefix(c.Contact, "mailto:"); contact != "" {
		return contact
	}
	return base
}

// mailFaults returns the faults of the mail settings.
func (c Config) mailFaults(bad func(format string, args ...any)) {
	c.lmtpFaults(bad)
	if c.SMTP == "" {
		if c.MailFrom != "" || c.SMTPUser != "" || c.SMTPPassword != "" || c.DKIMKey != "" {
			bad("smtp: name the server, or leave the other settings of mail out")
		}
		return
	}
	host, _, err := net.SplitHostPort(c.SMTP)
	if err != nil || host == "" {
		bad("smtp: %q is not host:port", c.SMTP)
	}
	if _, err := protocol.ParseMail(c.MailFrom); err != nil {
		bad("mail-from: %q is not a mail address such as stoa@example.org", c.MailFrom)
	}
	switch c.SMTPSecurity {
	case mail.TLS, mail.StartTLS:
	case mail.Plain:
		if !netx.IsLoopback(host) {
			bad("smtp-security: none is for a server on this machine")
		}
	default:
		bad("smtp-security: tls, starttls or none")
	}
	if (c.SMTPUser == "") != (c.SMTPPassword == "") {
		bad("smtp-user: give smtp-password with it, and neither without the other")
	}
	if (c.DKIMKey == "") != (c.DKIMSelector == "") {
		bad("dkim-key: give dkim-selector with it, and neither without the other")
	}
}
