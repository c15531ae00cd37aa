package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"stoa/node/account"
	"stoa/node/provider/mail"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// mailer returns the sender of mail: an SMTP server if one is configured, the log in
// development, otherwise nil.
func (n *Node) mailer(base *url.URL) (account.Mailer, error) {
	c := n.config
	if c.SMTP == "" {
		if c.Dev {
			return printed{n.log}, nil
		}
		return nil, nil
	}
	s := &mail.Sender{
		Server: c.SMTP, Security: c.SMTPSecurity, User: c.SMTPUser, From: c.MailFrom, Name: c.name(base.Host),
		Host: base.Hostname(), Selector: c.DKIMSelector,
	}
	var err error
	if s.Password, err = mail.ReadPassword(c.SMTPPassword); err != nil {
		return nil, fmt.Errorf("%w: smtp-password: %w", ErrConfig, err)
	}
	if c.DKIMKey != "" {
		if s.DKIM, err = mail.ReadKey(c.DKIMKey); err != nil {
			return nil, fmt.Errorf("%w: dkim-key: %w", ErrConfig, err)
		}
	}
	return letters{s}, nil
}

// letters sends mail by SMTP.
type letters struct{ *mail.Sender }

func (l letters) Send(ctx context.Context, x account.Letter) error {
	return l.Sender.Send(ctx, mail.Message{ID: x.ID, To: x.To, Subject: x.Subject, Text: x.Text})
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

// mailFaults returns the faults of the mail settings.
func (c Config) mailFaults(bad func(format string, args ...any)) {
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
