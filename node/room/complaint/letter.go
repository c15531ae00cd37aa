package complaint

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A mailbox is asked once for a complaint whether it wants to be told, by a letter with nothing in it that anybody wrote. Such letters count
// to those that ask mailboxes about meetings: in an hour in all, and to one mailbox.

// What a letter is for.
const (
	asks  = "asks"  // may the mailbox be asked? Then:
	sends = "sends" // the letter that asks
	tells = "tells" // the letter about an answer, to a mailbox that was confirmed
)

// letter is the arguments of a letter's job.
type letter struct {
	ID    string                  `json:"id"`
	What  string                  `json:"what"`
	State protocol.ComplaintState `json:"state,omitempty"` // that is told
}

func (c *Complaints) write(ctx context.Context, tx *storage.Tx, l letter, at time.Time) error {
	args, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.ComplaintMailJob, Lane: "mail " + l.ID, Args: args, RunAt: at})
}

// ticket opens a complaint for the reader of its mailbox, and confirms that.
func (c *Complaints) ticket(s *storage.StoredComplaint) string {
	h := hmac.New(sha256.New, c.LinkKey)
	h.Write([]byte(strings.Join([]string{"complaint link", s.ID, s.Mail}, "\x00")))
	return protocol.ReadTokenPrefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

func (c *Complaints) isTicket(s *storage.StoredComplaint, ticket string) bool {
	return s.Mail != "" && subtle.ConstantTimeCompare([]byte(ticket), []byte(c.ticket(s))) == 1
}

// again is how long a letter waits for which there is no room.
const again = 10 * time.Minute

// perHour is how many letters ask mailboxes within an hour where the operator sets no other number.
const perHour = 200

// ask decides whether the mailbox of a complaint is asked now, later or never.
func (c *Complaints) ask(ctx context.Context, tx *storage.Tx, s *storage.StoredComplaint) error {
	box, err := tx.Meetings().LockMailbox(ctx, storage.MailboxOf(c.LinkKey, s.Mail))
	if err != nil || box.Stopped || box.Bounced {
		return err
	}
	var sent protocol.Waiting
	if sent.Known, err = tx.Crowds().Since(ctx, "", storage.CrowdMailKnown, time.Hour); err != nil {
		return err
	}
	if sent.Strangers, err = tx.Crowds().Since(ctx, "", storage.CrowdMailStrangers, time.Hour); err != nil {
		return err
	}
	full := protocol.Shared{Most: cmp.Or(c.PerHour, perHour)}.Full(s.Known, sent)
	if at := box.Next(s.Known); full || at.After(tx.Now) {
		if !at.After(tx.Now) {
			at = tx.Now.Add(again)
		}
		if at.After(s.ResolveBy) {
			return nil
		}
		return c.write(ctx, tx, letter{ID: s.ID, What: asks}, at)
	}
	what := storage.CrowdMailStrangers
	if box.SentAt, box.Sent = tx.Now, box.Sent+1; s.Known {
		box.KnownAt, what = tx.Now, storage.CrowdMailKnown
	}
	if err := tx.Crowds().Add(ctx, "", what, 1); err != nil {
		return err
	}
	if err := tx.Meetings().PutMailbox(ctx, box); err != nil {
		return err
	}
	return c.write(ctx, tx, letter{ID: s.ID, What: sends}, tx.Now)
}

// Letter is the handler of ComplaintMailJob.
func (c *Complaints) Letter(ctx context.Context, _ storage.Job, l letter) (func(context.Context, *storage.Tx) error, error) {
	send := c.LettersVia()
	var s *storage.StoredComplaint
	err := c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		s, err = tx.Complaints().ByID(ctx, l.ID)
		return err
	})
	switch {
	case err != nil:
		return nil, storage.Missing(err, nil)
	case send == nil || s.Mail == "" || s.Confirmed != (l.What == tells):
		return nil, nil
	case l.What == asks:
		return func(ctx context.Context, tx *storage.Tx) error { return c.ask(ctx, tx, s) }, nil
	}
	t := c.Words(s.Language)
	subject := t.Text("Do you want mail about a complaint to %s?", c.Name)
	text := []string{
		t.Text("Somebody, probably you, complained to the operators of %s and gave this address. To be told of the answer, open this page and confirm it:", c.Name),
		c.page(s), t.Text("If it was not you, ignore this mail: no other comes."),
	}
	if l.What == tells {
		subject = t.Text("%s: your complaint was read", c.Name)
		text = []string{t.Text("The operators of %s have read your complaint; the answer is to come. Its number:", c.Name), s.ID}
		if l.State == protocol.ComplaintResolved {
			subject = t.Text("%s: your complaint was answered", c.Name)
			text[0] = t.Text("The operators of %s have answered your complaint. Its number:", c.Name)
		}
		if s.Answer != "" {
			text = append(text, "    | "+strings.ReplaceAll(s.Answer, "\n", "\n    | "))
		}
		text = append(text, c.page(s))
	}
	return nil, send(ctx, s.ID+"."+l.What+string(l.State), s.Mail, subject, strings.Join(text, "\n\n")+"\n")
}

// page is the address of the page of a complaint, for the reader of its mailbox.
func (c *Complaints) page(s *storage.StoredComplaint) string {
	return c.Base + "/complaints/" + s.ID + "?ticket=" + c.ticket(s)
}
