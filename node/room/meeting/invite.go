package meeting

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/protocol/netx"
	"stoa/storage"
)

// mailLane is the lane of mails about meetings: a mailbox gets them in the order of the changes.
const mailLane = "mail-meetings"

// ErrMailbox is in the error of a letter whose mailbox does not exist or takes no mail.
var ErrMailbox = errors.New("no such mailbox")

const alarm = 15 * time.Minute // before a meeting, in the calendar of its requester

// invite adds the calendar to the letter of an approval, a move or a cancellation (RFC 6047).
func (m *Meeting) invite(l *Letter, r *storage.StoredMeeting, p side) error {
	organizer := m.Mail().Answers(l.Bounce)
	if organizer == "" || r.State != protocol.MeetingApproved && r.State != protocol.MeetingCancelled {
		return nil
	}
	e := ics.Event{
		ID: r.ID, Node: m.host(), Summary: p.words.Text("Meeting with %s, %d min", p.name, minutes(r)), Description: m.described(r, p), Location: r.Location,
		Start: r.StartsAt, End: r.EndsAt, Stamp: r.MovedAt, Sequence: r.Sequence, Alarm: alarm,
		Organizer: ics.Person{Name: p.name, Mail: organizer}, Attendee: ics.Person{Name: r.Name, Mail: r.Mail},
	}
	if strings.HasPrefix(r.Location, "https://") {
		e.URL = r.Location // of the call
	}
	var err error
	l.Method, l.From, l.HTML = "REQUEST", p.words.Text("%s via %s", p.name, m.host()), m.page(l.Text)
	if r.State == protocol.MeetingCancelled {
		l.Method = "CANCEL"
		l.Calendar, err = e.Cancel()
		return err
	}
	l.Calendar, err = e.Request()
	return err
}

// described returns the words of a calendar entry. What the requester wrote is marked, and its links
// cannot be followed: an entry is on a calendar also when the mail was taken for spam.
func (m *Meeting) described(r *storage.StoredMeeting, p side) string {
	text := []string{p.words.Text("With %s.", p.who),
		times(p.words, protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt}, cmp.Or(r.TimeZone, p.zone), p.zone)}
	if r.Location != "" {
		text = append(text, p.words.Text("Where: %s", r.Location))
	}
	return strings.Join(append(text, p.words.Text("Message from the requester (not verified):")+"\n"+strings.ReplaceAll(r.Purpose, "://", "[:]//")), "\n\n")
}

// A mailing is what is to be sent, as the database says.
type mailing struct {
	Letter
	raw  []byte // as it is sent, for one with a calendar that was composed before
	none bool   // the mailbox takes no mail
}

// SendMail makes one attempt to send the mail about one move. It reads the request first, and sends nothing
// that has been overtaken by another move. An invitation is composed and stored by the first job and sent by
// the next: every attempt has the same bytes. When a process dies after the mail server has taken a letter
// and before that is stored, it is sent once more, with the Message-ID by which a mailbox knows it.
func (m *Meeting) SendMail(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	if m.Mail() == nil {
		return nil, nil
	}
	var l mailing
	if s.N == 1 && s.Part != decided { // the first state of a request has a letter only when its mailbox is to be confirmed
		return func(ctx context.Context, tx *storage.Tx) error { return m.askMailbox(ctx, tx, j, s) }, nil
	}
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		l, err = m.mailing(ctx, tx, s)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case l.none:
		return func(ctx context.Context, tx *storage.Tx) error {
			return errors.Join(m.note(ctx, tx, s, protocol.MeetingMailNone), tx.Meetings().DropLetter(ctx, letterID(s.ID, s.N)))
		}, nil
	case l.To == "":
		return func(ctx context.Context, tx *storage.Tx) error {
			return tx.Meetings().DropLetter(ctx, letterID(s.ID, s.N))
		}, nil
	case l.Method == "":
		err = m.Mail().Send(ctx, l.Letter, nil)
	case l.raw != nil:
		err = m.Mail().Send(ctx, l.Letter, l.raw)
	default:
		var raw []byte
		if raw, err = m.Mail().Compose(l.Letter); err == nil {
			return func(ctx context.Context, tx *storage.Tx) error { return m.keep(ctx, tx, j, s, l.ID, raw) }, nil
		}
	}
	failed := err
	return func(ctx context.Context, tx *storage.Tx) error { return m.sent(ctx, tx, j, s, failed) }, nil
}

// mailing returns what a job is to send: without To nothing.
func (m *Meeting) mailing(ctx context.Context, tx *storage.Tx, s subject) (l mailing, err error) {
	if s.Part == decided {
		l.Letter, err = m.question(ctx, tx, s)
		return l, err
	}
	r, err := tx.Meetings().ByID(ctx, s.ID)
	if err != nil || r.Moves != s.N || r.Mail == "" {
		return l, storage.Missing(err, nil)
	}
	if l.none, err = unwanted(ctx, tx, r.Mailbox); err != nil || l.none {
		return l, err
	}
	if l.Letter, err = m.letter(ctx, tx, r); err != nil || l.Method == "" {
		return l, err
	}
	sealed, err := tx.Meetings().Letter(ctx, l.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return l, nil
	}
	if err == nil {
		l.raw, err = m.Seal.Open(storage.PurposeLetter(l.ID), sealed)
	}
	return l, err
}

// unwanted reports whether a mailbox wants no mail about meetings, or takes none.
func unwanted(ctx context.Context, tx *storage.Tx, mailbox [32]byte) (bool, error) {
	box, err := tx.Meetings().Mailbox(ctx, mailbox)
	return box.Stopped || box.Bounced, err
}

// letterKept is how long an invitation is kept that cannot be sent: longer than it is tried.
const letterKept = 72 * time.Hour

// keep stores an invitation and enqueues the job that sends it.
func (m *Meeting) keep(ctx context.Context, tx *storage.Tx, j storage.Job, s subject, id string, raw []byte) error {
	s.Try++
	return errors.Join(tx.Meetings().PutLetter(ctx, id, m.Seal.Seal(storage.PurposeLetter(id), raw), tx.Now.Add(letterKept)),
		enqueue(ctx, tx, j.Kind, j.Lane, s, tx.Now))
}

// Mails are retried for so long.
const (
	mailRetryFirst   = 15 * time.Second
	mailRetryLongest = time.Hour
	mailTries        = 30
)

// again enqueues another attempt to send a mail, unless its failure is final or there were enough.
func again(ctx context.Context, tx *storage.Tx, j storage.Job, s subject, failed error) (bool, error) {
	e := protocol.AsError(failed)
	if !e.Code.Temporary() || s.Try >= mailTries {
		return false, nil
	}
	s.Try++
	return true, enqueue(ctx, tx, j.Kind, j.Lane, s, tx.Now.Add(max(netx.Jitter(netx.Backoff(mailRetryFirst, mailRetryLongest, s.Try)), e.RetryAfter)))
}

// sent stores what became of a mail, or enqueues another attempt.
func (m *Meeting) sent(ctx context.Context, tx *storage.Tx, j storage.Job, s subject, failed error) error {
	is := protocol.MeetingMailSent
	switch {
	case errors.Is(failed, ErrMailbox):
		is = protocol.MeetingMailBounced
		if err := m.bounced(ctx, tx, s.ID); err != nil {
			return err
		}
	case failed != nil:
		if another, err := again(ctx, tx, j, s, failed); another || err != nil {
			return err
		}
		is = protocol.MeetingMailFailed
	}
	return errors.Join(tx.Meetings().DropLetter(ctx, letterID(s.ID, s.N)), m.note(ctx, tx, s, is))
}

// note stores how far the mail about the last move of a request is.
func (m *Meeting) note(ctx context.Context, tx *storage.Tx, s subject, is protocol.MeetingMail) error {
	r, _, err := locked(ctx, tx, s.ID)
	if err != nil || r.Moves != s.N || r.Sent == protocol.MeetingMailBounced {
		return storage.Missing(err, nil)
	}
	r.Sent = is
	return tx.Meetings().Save(ctx, r)
}
