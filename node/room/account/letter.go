package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/identity/session"
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
	Account string `json:"account,omitempty"`
	Handle  string `json:"handle,omitempty"`
	Ticket  string `json:"ticket,omitempty"` // hash of the ticket with the address, hexadecimal
	trial
}

// AskLink sends a sign-in link to an address, if it is an account's. The writes and
// the answer are the same if it is not, so that nobody learns who has an account
// here.
func (a *Accounts) AskLink(ctx context.Context, tx *storage.Tx, mail string) error {
	address, err := protocol.ParseMail(mail)
	if err != nil {
		return err
	}
	acc, err := tx.Accounts().ByMail(ctx, address)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	args, err := json.Marshal(letter{Account: acc.ID})
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
	return a.sendWaiting(ctx, j, in, Letter{ID: letterID(j), To: acc.Mail, Subject: "Sign in to " + a.Name, Text: paragraphs(
		"Someone, probably you, asked to sign in to "+a.Base+". This link signs you in. It works once, within 30 minutes:",
		a.Base+"/sign-in?ticket="+secret,
		"If it was not you, ignore this mail: nothing happens without the link.",
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
	err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if s, err = tx.Profiles().NotifySettings(ctx, in.Handle); err != nil || s.Mail == "" || s.Confirmed {
			return err
		}
		late, err = sentLately(ctx, tx, j, in, storage.TicketNoticeMail, s.Mail, askEvery)
		if err != nil || late {
			return err
		}
		return tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketNoticeMail, Handle: in.Handle, Mail: s.Mail,
			ExpiresAt: tx.Now.Add(session.TicketLifetime)})
	})
	if err != nil || s.Mail == "" || s.Confirmed || late {
		return nil, err
	}
	return a.sendWaiting(ctx, j, in, Letter{ID: letterID(j), To: s.Mail, Subject: "Confirm this address for @" + in.Handle, Text: paragraphs(
		"The owner of @"+in.Handle+" at "+a.Base+" wants notices to be sent to this address. To agree, enter this code on the account page within 30 "+
			"minutes, or give it to confirm_mail:",
		secret,
		"If that is not you, ignore this mail: nothing more will be sent.",
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
		if s.Webhook == "" {
			return nil
		}
		return tx.Enqueue(ctx, storage.Job{Kind: storage.WebhookJob, Lane: webhook.Lane(s.Webhook), Args: args, Dedupe: storage.NoticeKey(storage.WebhookJob, in)})
	}, nil
}

// readAt is the page for people about the subject of a notice.
func (a *Accounts) readAt(n protocol.Notice) string {
	switch {
	case n.Event == protocol.IdentityEnded:
		return a.Base + "/account/keys?handle=" + n.Handle
	case protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/account/attention?handle=" + n.Handle
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
	case protocol.IsID(protocol.PostID, n.Subject):
		return a.Base + "/board/" + n.Subject
	case protocol.IsID(protocol.BidID, n.Subject):
		return a.Base + "/api/owner/bids/" + n.Subject
	case protocol.IsID(protocol.MeetingID, n.Subject):
		return a.Base + "/api/owner/meetings/" + n.Subject
	case protocol.IsID(protocol.CalendarID, n.Subject):
		return a.Base + "/api/owner/calendars/" + n.Subject
	}
	return a.Base + "/api/owner/threads/" + n.Subject
}

var happened = map[protocol.NoticeEvent]string{
	protocol.ThreadBegun:     "Someone wrote to @%s",
	protocol.ThreadMessage:   "New message in a thread with @%s",
	protocol.PostReported:    "A post of @%s was reported",
	protocol.PostHidden:      "A post of @%s was hidden",
	protocol.BidIsClaimed:    "A payment for a bid on the board of @%s waits for you to confirm it",
	protocol.BidIsLive:       "A bid is live on the board of @%s",
	protocol.BidRefundByHand: "Money of a bid on the board of @%s needs you",
	protocol.MeetingAsked:    "Somebody asks @%s for a meeting",
	protocol.MeetingChanged:  "A meeting with @%s has changed",
	protocol.CalendarTrouble: "A calendar of @%s needs you",
	protocol.MeetingReminder: "A meeting with @%s is near",
	protocol.ProfileDecided:  "An operator has decided about @%s",
	protocol.IdentityEnded:   "@%s has no chain identity any more",
}

// SendMail is the handler of MailJob.
func (a *Accounts) SendMail(ctx context.Context, j storage.Job, job telling) (func(context.Context, *storage.Tx) error, error) {
	if a.Mail == nil {
		return nil, nil
	}
	in := job.Notice
	s, link, err := a.addressee(ctx, in.Notice, func(s storage.NotifySettings) string { return s.Mail })
	if err != nil || s.Mail == "" || !s.Confirmed {
		return nil, err
	}
	what := fmt.Sprintf(happened[in.Event], in.Handle)
	when := ", at " + in.At.UTC().Format("2 Jan 2006, 15:04 UTC")
	told := when + ". The next line is from it; it was written by someone else, not by this node:"
	if in.Event == protocol.IdentityEnded {
		told = when + ". It was enrolled to " + in.Subject + ", and the reason is this:"
	}
	text := []string{what + told, "    | " + plain(strings.ReplaceAll(in.Title, "://", ":// "), 140), "Read it here: " + a.readAt(in.Notice)}
	if link != nil {
		text = append(text, "To decide without signing in, open this link. It shows what it is about and asks you; it works once, and not after that has changed:",
			link.URL)
	}
	text = append(text, "You can change where notices are sent: "+a.Base+"/account/notices?handle="+in.Handle)
	err = a.Mail.Send(ctx, Letter{ID: in.ID, To: s.Mail, Subject: what, Text: paragraphs(text...)})
	if err != nil {
		return retry(j, forADay, &job.trial, &job, err)
	}
	return nil, nil
}

// addressee returns where notices about a profile go, and for what waits for its owner the link that decides, for the reader of the address that to chooses.
func (a *Accounts) addressee(ctx context.Context, n protocol.Notice, to func(storage.NotifySettings) string) (s storage.NotifySettings,
	link *protocol.NoticeLink, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		s, err = tx.Profiles().NotifySettings(ctx, n.Handle)
		kind, _, _ := strings.Cut(n.Subject, "_")
		if err != nil || !s.Links || a.Links[kind] == nil || to(s) == "" {
			return err
		}
		link, err = a.Links[kind](ctx, tx, n.Subject, n.Handle, to(s))
		return err
	})
	return s, link, err
}

func letterID(j storage.Job) string { return fmt.Sprintf("job-%d-%d", j.ID, j.Attempt) }

func paragraphs(p ...string) string { return strings.Join(p, "\n\n") + "\n" }
