package meeting

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// How a mailbox is asked whether its reader wants a meeting. The answer to a request is made without a
// look at what is known of the mailbox, so that it is the same, and takes the same steps, for every
// one; the job of the letter looks, and the letter says what waits. No stranger can use up the letters
// of a mailbox: each has a link to all that waits for the mailbox at the moment when it is opened.

// budget is how many letters the node sends within an hour, shared by known callers and strangers.
func (m *Meeting) budget() protocol.Shared { return protocol.Shared{Most: cmp.Or(m.PerHour, perHour)} }

// lettersOf counts the letters of the last hour.
func lettersOf(ctx context.Context, tx *storage.Tx) (w protocol.Waiting, err error) {
	if w.Known, err = tx.Crowds().Since(ctx, "", storage.CrowdMailKnown, time.Hour); err != nil {
		return w, err
	}
	w.Strangers, err = tx.Crowds().Since(ctx, "", storage.CrowdMailStrangers, time.Hour)
	return w, err
}

// askMailbox decides about the letter for a request whose mailbox is not confirmed: it is sent now, later, or
// not at all, because one that was sent before shows the request as well, or the mailbox wants none.
// Every request takes its part of the budget, whatever is known of its mailbox.
func (m *Meeting) askMailbox(ctx context.Context, tx *storage.Tx, j storage.Job, s subject) error {
	r, err := tx.Meetings().ByID(ctx, s.ID)
	if err != nil || r.State != protocol.MeetingUnconfirmed || r.Moves != s.N {
		return storage.Missing(err, nil)
	}
	box, err := tx.Meetings().LockMailbox(ctx, r.Mailbox)
	if err != nil {
		return err
	}
	if s.Part == "" {
		sent, err := lettersOf(ctx, tx)
		if err != nil {
			return err
		}
		if m.budget().Full(r.Known, sent) {
			return m.mailLater(ctx, tx, j, s, tx.Now.Add(mailAgain))
		}
		what := storage.CrowdMailStrangers
		if r.Known {
			what = storage.CrowdMailKnown
		}
		if err := tx.Crowds().Add(ctx, "", what, 1); err != nil {
			return err
		}
		s.Part = counted
	}
	switch at := box.Next(r.Known); {
	case box.Stopped || box.Bounced || !box.SentAt.Before(r.AskedAt):
		return nil
	case at.After(tx.Now) && at.Before(r.DueAt):
		return m.mailLater(ctx, tx, j, s, at)
	case at.After(tx.Now):
		return nil
	}
	if box.SentAt, box.Sent = tx.Now, box.Sent+1; r.Known {
		box.KnownAt = tx.Now
	}
	s.Part, s.Box = decided, hex.EncodeToString(r.Mailbox[:])
	return errors.Join(tx.Meetings().PutMailbox(ctx, box), m.mailLater(ctx, tx, j, s, tx.Now))
}

// Parts of asking a mailbox, after the first.
const (
	counted = "counted" // the request has its part of the budget
	decided = "decided" // the letter is to be sent
)

// mailAgain is how long a letter waits for which there was no room in the budget.
const mailAgain = 10 * time.Minute

func (m *Meeting) mailLater(ctx context.Context, tx *storage.Tx, j storage.Job, s subject, at time.Time) error {
	s.Try++
	return enqueue(ctx, tx, j.Kind, j.Lane, s, at)
}

// question returns the letter that asks the reader of a mailbox about all that waits for it; without To
// when nothing does. It contains nothing that a requester wrote.
func (m *Meeting) question(ctx context.Context, tx *storage.Tx, s subject) (l Letter, err error) {
	mailbox, err := mailboxIn(s.Box)
	if err != nil {
		return l, err
	}
	all, err := tx.Meetings().OfMailbox(ctx, mailbox)
	if err != nil {
		return l, err
	}
	all = slices.DeleteFunc(all, func(r storage.StoredMeeting) bool {
		return r.State == protocol.MeetingUnconfirmed && stateNow(tx, &r) != r.State || r.Mail == ""
	})
	at := slices.IndexFunc(all, func(r storage.StoredMeeting) bool { return r.State == protocol.MeetingUnconfirmed })
	if at < 0 {
		return l, nil
	}
	newest := &all[at]
	var asked, known []string
	for i := range all[:max(at+1, min(len(all), mostListed))] {
		r := &all[i]
		p, err := m.side(ctx, tx, r.Handle, newest.Language)
		if err != nil {
			return l, err
		}
		about := p.who + "\n" + times(p.words, protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt}, cmp.Or(r.TimeZone, p.zone), p.zone)
		switch {
		case r.State != protocol.MeetingUnconfirmed && r.Confirmed:
			known = append(known, about+"\n    "+m.pageOf(r))
		case r.State == protocol.MeetingUnconfirmed:
			asked = append(asked, about)
		}
	}
	p, err := m.side(ctx, tx, newest.Handle, newest.Language)
	if err != nil {
		return l, err
	}
	text := append([]string{p.words.Text("Someone, probably you, asked for a meeting with:")}, asked...)
	text = append(text, p.words.Text("If it was you, open this link within 24 hours. It shows what waits for your answer, also requests that came after "+
		"this mail, and asks you; nobody who is asked sees anything before:"),
		m.linkTo(m.mailboxTicket(mailbox, tx.Now)), p.words.Text("If it was not you, ignore this mail: nothing happens without the link."))
	if len(known) > 0 {
		text = append(append(text, p.words.Text("You have these requests already:")), known...)
	}
	l = m.complete(newest, p, protocol.MeetingUnconfirmed, text)
	l.ID = letterID(s.ID, s.N)
	return l, nil
}

// mostListed is how many requests a letter lists; its link shows more.
const mostListed = 10

func mailboxIn(text string) (hash [32]byte, err error) {
	raw, err := hex.DecodeString(text)
	copy(hash[:], raw)
	return hash, err
}

// A ticket of a mailbox is good in the fortnight in which it was made, and in the next: longer than any
// two letters to a mailbox are apart.
const ticketFor = 14 * 24 * time.Hour

func (m *Meeting) mailboxTicket(mailbox [32]byte, at time.Time) string {
	name := base64.RawURLEncoding.EncodeToString(mailbox[:])
	return protocol.ReadTokenPrefix + string(ofMailbox) + name + m.mac(string(ofMailbox), name, at.UTC().Truncate(ticketFor).Format(time.DateOnly))
}

// waiting returns what of a mailbox waits for the answer of its reader, newest first.
func waiting(ctx context.Context, tx *storage.Tx, mailbox [32]byte) (found []storage.StoredMeeting, err error) {
	all, err := tx.Meetings().OfMailbox(ctx, mailbox)
	for i := range all {
		if stateNow(tx, &all[i]) == protocol.MeetingUnconfirmed {
			found = append(found, all[i])
		}
	}
	return found, err
}

// confirm submits a request whose mailbox was confirmed.
func (m *Meeting) confirm(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredMeeting, error) {
	r, _, err := locked(ctx, tx, id)
	if err != nil || stateNow(tx, r) != protocol.MeetingUnconfirmed {
		return nil, storage.Missing(err, errLink)
	}
	s, err := m.settingsOf(ctx, tx, r.Handle)
	if err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(r.Mail, "@")
	blocked, err := tx.ContactBlocks().Match(ctx, r.Handle, append(blockedDomains(domain), blockedMailbox(r.Mailbox)))
	if err != nil {
		return nil, err
	}
	n, err := tx.Meetings().Count(ctx, r.Handle, r.Requester)
	if err != nil {
		return nil, err
	}
	others, err := tx.Meetings().OfMailbox(ctx, r.Mailbox)
	if err != nil {
		return nil, err
	}
	same := 0
	for _, o := range others {
		if o.Handle == r.Handle && o.State != protocol.MeetingUnconfirmed {
			same++
		}
	}
	switch {
	case blocked:
		return nil, protocol.Errorf(protocol.ContactRefused, "@%s does not accept meeting requests from this mailbox", r.Handle)
	case !s.Open:
		return nil, protocol.Errorf(protocol.Conflict, "@%s takes no meeting requests now", r.Handle)
	case same >= protocol.MaxWaitingOfMailbox:
		return nil, protocol.Errorf(protocol.Conflict, "a request of yours to @%s waits already; cancel it, or wait", r.Handle)
	case (protocol.Shared{Most: s.Rules.Complete().MaxWaiting}).Full(true, n.ForPerson):
		return nil, refused(r.Handle, "too many requests wait for @%s; try this link again later", r.Handle)
	}
	box, err := tx.Meetings().LockMailbox(ctx, r.Mailbox)
	if err != nil {
		return nil, err
	}
	box.Sent, box.Bounced, box.Stopped = 0, false, false
	if err := tx.Meetings().PutMailbox(ctx, box); err != nil {
		return nil, err
	}
	r.Confirmed, r.Known, r.Sent = true, true, protocol.MeetingMailSent
	return r, m.move(ctx, tx, r, change{to: protocol.MeetingSubmitted, note: "the mailbox was confirmed"})
}
