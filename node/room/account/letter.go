package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// A Letter is a mail to one person, in plain text.
type Letter struct {
	ID                string // unique; the same at each attempt where the letter is, so that a repeat is recognised
	To, Subject, Text string
}

// A Mailer sends letters. After a final *protocol.Error a letter must not be
// retried. Errors and log lines must not contain the address.
type Mailer interface {
	Send(ctx context.Context, l Letter) error
}

// A Webhook posts a document to an address that an owner chose.
type Webhook interface {
	Send(ctx context.Context, address, id string, body []byte) error
}

// Lanes. Letters that a person waits for are not queued after notices.
const (
	letterLane = "mail"
	noticeLane = "mail-notices"
)

// letter is the arguments of a letter's job.
type letter struct {
	Account  string `json:"account,omitempty"`
	Handle   string `json:"handle,omitempty"`
	Ticket   string `json:"ticket,omitempty"`   // hash of the ticket with the address, hexadecimal
	Language string `json:"language,omitempty"` // of the page that asked; "" for the account's
	trial
}

// AskLink sends a sign-in link to an address, if it is an account's, in a language by its
// code. The writes and the answer are the same if it is not, so that nobody learns who has
// an account here.
func (a *Accounts) AskLink(ctx context.Context, tx *storage.Tx, mail, language string) error {
	address, err := protocol.ParseMail(mail)
	if err != nil {
		return err
	}
	acc, err := tx.Accounts().ByMail(ctx, address)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	args, err := json.Marshal(letter{Account: acc.ID, Language: language})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.SignInJob, Lane: letterLane, Args: args, Dedupe: string(storage.SignInJob) + " " + acc.ID})
}

// linkEvery is the shortest time between sign-in links to one address, and
// linksAtOnce the number of valid links of an account: anyone who knows an address
// can request them, and its owner receives all of them.
const (
	linkEvery   = 2 * time.Minute
	linksAtOnce = 5
)

// SendLink is the handler of SignInJob.
func (a *Accounts) SendLink(ctx context.Context, j storage.Job, in letter) (func(context.Context, *storage.Tx) error, error) {
	if in.Account == "" || a.Mail == nil {
		return nil, nil
	}
	secret, hash := session.New(session.Ticket)
	var acc storage.Account
	var late bool
	err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if acc, err = tx.Accounts().ByID(ctx, in.Account); err != nil || acc.Mail == "" {
			return err
		}
		late, err = sentLately(ctx, tx, j, in, storage.TicketSignIn, acc.Mail, linkEvery)
		if err != nil || late {
			return err
		}
		n, err := tx.Tickets().CountOf(ctx, storage.TicketSignIn, acc.ID)
		if late = n >= linksAtOnce && in.Try == 0; err != nil || late {
			return err
		}
		return tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketSignIn, Account: acc.ID, Mail: acc.Mail,
			ExpiresAt: tx.Now.Add(session.TicketLifetime)})
	})
	if err != nil || acc.Mail == "" || late {
		return nil, storage.Missing(err, nil)
	}
	l := a.Words(cmp.Or(in.Language, acc.Language))
	return a.sendWaiting(ctx, j, in, Letter{ID: letterID(j), To: acc.Mail, Subject: l.Text("Sign in to %s", a.Name), Text: paragraphs(
		l.Text("This link signs you in to %s. It works once, within 30 minutes:", a.Base),
		a.Base+"/sign-in?ticket="+secret,
		l.Text("If you did not ask for it, ignore this mail: nothing happens without the link."),
	)})
}

// sendWaiting sends a letter that a person waits for.
func (a *Accounts) sendWaiting(ctx context.Context, j storage.Job, in letter, l Letter) (func(context.Context, *storage.Tx) error, error) {
	if err := a.Mail.Send(ctx, l); err != nil {
		return retry(j, whileWaiting, &in.trial, &in, err)
	}
	return nil, nil
}

// sentLately reports whether a letter with a ticket was sent less than every ago.
// The ticket of a failed attempt of the same job does not count: its letter did not
// arrive.
func sentLately(ctx context.Context, tx *storage.Tx, j storage.Job, in letter, purpose storage.TicketPurpose, mail string, every time.Duration) (bool, error) {
	if j.Attempt > 1 || in.Try > 0 {
		return false, nil
	}
	n, err := tx.Tickets().CountTo(ctx, purpose, mail, tx.Now.Add(session.TicketLifetime-every))
	return n > 0, err
}

// SendConfirmation is the handler of ConfirmJob.
func (a *Accounts) SendConfirmation(ctx context.Context, j storage.Job, in letter) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	secret, hash := session.New(session.Ticket)
	var s storage.NotifySettings
	var late bool
	var l hall.Words
	err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if s, err = tx.Profiles().NotifySettings(ctx, in.Handle); err != nil || s.Mail == "" || s.Confirmed {
			return err
		}
		late, err = sentLately(ctx, tx, j, in, storage.TicketNoticeMail, s.Mail, askEvery)
		if err != nil || late {
			return err
		}
		if l, err = a.wordsFor(ctx, tx, in.Handle); err != nil {
			return err
		}
		return tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketNoticeMail, Handle: in.Handle, Mail: s.Mail,
			ExpiresAt: tx.Now.Add(session.TicketLifetime)})
	})
	if err != nil || s.Mail == "" || s.Confirmed || late {
		return nil, err
	}
	return a.sendWaiting(ctx, j, in, Letter{ID: letterID(j), To: s.Mail, Subject: l.Text("Confirm this address for @%s", in.Handle), Text: paragraphs(
		l.Text("The owner of @%s at %s wants notices to be sent to this address. If that is you, open this link within 30 minutes:", in.Handle, a.Base),
		a.Base+"/account/notices?handle="+in.Handle+"&code="+secret,
		l.Text("Or enter this code on the page “Notices” of your account:"),
		secret,
		l.Text("If that is not you, ignore this mail: nothing more will be sent."),
	)})
}

// telling is the arguments of the jobs that send a notice.
type telling struct {
	Notice protocol.NoticeDocument `json:"notice"`
	trial
}

// Notice is the handler of storage.NoticeJob: it queues one job for each way by
// which the owner wants to be notified.
func (a *Accounts) Notice(_ context.Context, j storage.Job, in protocol.Notice) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Profiles().NotifySettings(ctx, in.Handle)
		if err != nil || !wants(s, in.Event) {
			return err
		}
		if in.Event == protocol.ProfileNamed { // it may have been hidden at once
			if p, err := tx.Posts().ByID(ctx, in.Subject); err != nil || p.State != protocol.Visible {
				return storage.Missing(err, nil)
			}
		}
		args, err := json.Marshal(telling{Notice: protocol.NoticeDocument{
			Type: "notice", ID: protocol.NewID("ntc", tx.Now), Notice: in, URL: a.about(in), Untrusted: true,
		}})
		if err != nil {
			return err
		}
		if s.Mail != "" && s.Confirmed && a.Mail != nil {
			if err := tx.Enqueue(ctx, storage.Job{Kind: storage.MailJob, Lane: noticeLane, Args: args, Dedupe: storage.NoticeKey(storage.MailJob, in)}); err != nil {
				return err
			}
		}
		if err := a.enqueuePush(ctx, tx, in); err != nil || s.Webhook == "" {
			return err
		}
		return tx.Enqueue(ctx, storage.Job{Kind: storage.WebhookJob, Lane: webhook.Lane(s.Webhook), Args: args, Dedupe: storage.NoticeKey(storage.WebhookJob, in)})
	}, nil
}

// enqueuePush queues a notice for the devices of the account of a profile.
func (a *Accounts) enqueuePush(ctx context.Context, tx *storage.Tx, n protocol.Notice) error {
	acc, err := tx.Accounts().OfProfile(ctx, n.Handle)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return tx.Devices().Enqueue(ctx, acc.ID, string(n.Event)+" "+n.Subject, storage.Push{Notice: raw})
}

// readAt is the page for people about the subject of a notice.
func (a *Accounts) readAt(n protocol.Notice) string {
	switch {
	case n.Event == protocol.IdentityEnded:
		return a.Base + "/account/keys?handle=" + n.Handle
	case n.Event == protocol.ProfileDecided:
		return a.Base + "/account/start?handle=" + n.Handle
	case n.Event == protocol.ReviewCounted:
		return a.Base + "/@" + n.Handle + "/reviews"
	case n.Event == protocol.ReceiptIssued && protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/bids/" + n.Subject
	case n.Event == protocol.AppealAnswered:
		return a.Base + "/complaints/" + n.Subject
	case protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/account/attention?handle=" + n.Handle
	case protocol.IsID(protocol.OrderID, n.Subject):
		return a.Base + "/account/orders?handle=" + n.Handle
	case protocol.IsID(protocol.ThreadID, n.Subject):
		return a.Base + "/account/threads/" + n.Subject
	case protocol.IsID(protocol.MeetingID, n.Subject):
		return a.Base + "/account/meetings/" + n.Subject
	}
	return a.about(n)
}

// about is the address for programs of the subject of a notice.
func (a *Accounts) about(n protocol.Notice) string {
	switch {
	case n.Event == protocol.IdentityEnded:
		return a.Base + "/api/owner/identity"
	case n.Event == protocol.ProfileDecided:
		return a.Base + "/api/owner/holders"
	case n.Event == protocol.ReviewCounted:
		return a.Base + "/api/public/agents/" + n.Handle + "/reviews"
	case n.Event == protocol.ReceiptIssued && protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/api/public/bids/" + n.Subject
	case n.Event == protocol.ReceiptIssued:
		return a.Base + "/api/public/order-receipts/" + n.Subject
	case n.Event == protocol.AppealAnswered:
		return a.Base + "/api/public/complaints/" + n.Subject
	case protocol.IsID(protocol.PostID, n.Subject):
		return a.Base + "/board/" + n.Subject
	case protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/api/owner/bids/" + n.Subject
	case protocol.IsID(protocol.OrderID, n.Subject):
		return a.Base + "/api/owner/orders?handle=" + n.Handle
	case protocol.IsID(protocol.MeetingID, n.Subject):
		return a.Base + "/api/owner/meetings/" + n.Subject
	case n.Event == protocol.CatalogTrouble:
		return a.Base + "/api/owner/merchant/address?handle=" + n.Handle
	case protocol.IsID(protocol.CalendarID, n.Subject):
		return a.Base + "/api/owner/calendars/" + n.Subject
	}
	return a.Base + "/api/owner/threads/" + n.Subject
}

var happened = map[protocol.NoticeEvent]string{
	protocol.ThreadBegun:     hall.Key("Someone wrote to @%s"),
	protocol.ThreadMessage:   hall.Key("New message in a thread with @%s"),
	protocol.PostReported:    hall.Key("A post of @%s was reported"),
	protocol.PostHidden:      hall.Key("A post of @%s was hidden"),
	protocol.BidIsClaimed:    hall.Key("A payment for a bid on the board of @%s waits for you to confirm it"),
	protocol.BidIsLive:       hall.Key("A bid is live on the board of @%s"),
	protocol.BidRefundByHand: hall.Key("Money of a bid on the board of @%s needs you"),
	protocol.MeetingAsked:    hall.Key("Somebody asks @%s for a meeting"),
	protocol.MeetingChanged:  hall.Key("A meeting with @%s has changed"),
	protocol.CalendarTrouble: hall.Key("A calendar of @%s needs you"),
	protocol.CatalogTrouble:  hall.Key("The catalog of @%s cannot be read"),
	protocol.MeetingReminder: hall.Key("A meeting with @%s is near"),
	protocol.ProfileNamed:    hall.Key("A post names @%s"),
	protocol.ReviewCounted:   hall.Key("A review of @%s counts"),
	protocol.OrderChanged:    hall.Key("An order at @%s needs you, or has changed"),
	protocol.ReceiptIssued:   hall.Key("A receipt was issued to @%s"),
	protocol.ProfileDecided:  hall.Key("An operator has decided about @%s"),
	protocol.AppealAnswered:  hall.Key("An operator has answered the appeal of @%s"),
	protocol.IdentityEnded:   hall.Key("@%s has no chain identity any more"),
}

// SendMail is the handler of MailJob.
func (a *Accounts) SendMail(ctx context.Context, j storage.Job, job telling) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	in := job.Notice
	s, l, link, err := a.addressee(ctx, in.Notice, func(s storage.NotifySettings) string { return s.Mail })
	if err != nil || s.Mail == "" || !s.Confirmed {
		return nil, err
	}
	what, when := l.Text(happened[in.Event], in.Handle), l.Time(in.At.UTC(), "2 Jan 2006, 15:04 UTC")
	told := l.Text("%s, at %s. Someone else wrote the next line:", what, when)
	if in.Event == protocol.IdentityEnded {
		told = l.Text("%s, at %s. It was enrolled to %s, and the reason is this:", what, when, in.Subject)
	}
	if in.Event == protocol.ProfileDecided || in.Event == protocol.AppealAnswered {
		told = l.Text("%s, at %s:", what, when)
	}
	text := []string{told, "    | " + plain(strings.ReplaceAll(in.Title, "://", ":// "), 140), l.Text("Read it here: %s", a.readAt(in.Notice))}
	if link != nil {
		text = append(text, l.Text("To decide without signing in, open this link. It works once, and not after that has changed:"), link.URL)
	}
	text = append(text, l.Text("You can change where notices are sent: %s", a.Base+"/account/notices?handle="+in.Handle))
	err = a.Mail.Send(ctx, Letter{ID: in.ID, To: s.Mail, Subject: what, Text: paragraphs(text...)})
	if err != nil {
		return retry(j, forADay, &job.trial, &job, err)
	}
	return nil, nil
}

// wordsFor returns the texts of letters about a profile: in the language of its account.
func (a *Accounts) wordsFor(ctx context.Context, tx *storage.Tx, handle string) (hall.Words, error) {
	acc, err := tx.Accounts().OfProfile(ctx, handle)
	return a.Words(acc.Language), storage.IfMissing(err, nil)
}

// addressee returns where notices about a profile go, their language, and for what waits for its owner the link that decides, for the reader of
// the address that to chooses.
func (a *Accounts) addressee(ctx context.Context, n protocol.Notice, to func(storage.NotifySettings) string) (s storage.NotifySettings,
	l hall.Words, link *protocol.NoticeLink, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if l, err = a.wordsFor(ctx, tx, n.Handle); err != nil {
			return err
		}
		s, err = tx.Profiles().NotifySettings(ctx, n.Handle)
		kind, _, _ := strings.Cut(n.Subject, "_")
		if err != nil || !s.Links || a.Links[kind] == nil || to(s) == "" || n.Event == protocol.ReceiptIssued { // of another's board
			return err
		}
		link, err = a.Links[kind](ctx, tx, n.Subject, n.Handle, to(s))
		return err
	})
	return s, l, link, err
}

func letterID(j storage.Job) string { return fmt.Sprintf("job-%d-%d", j.ID, j.Attempt) }

func paragraphs(p ...string) string { return strings.Join(p, "\n\n") + "\n" }
