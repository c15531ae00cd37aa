package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/storage"
)

// maxCounters is how many other times a requester may propose for one time of a meeting.
const maxCounters = 5

// maxAhead is how far the clock of a calendar may be ahead: a later answer would hide all that follow.
const maxAhead = 24 * time.Hour

// Answered stores the answer of a calendar to an invitation. at is Letter.Bounce of the invitation whose
// address the mail came to, which only its readers know, "" when it came to another one; signers returns
// the domains whose signatures of the mail are valid, lower case. An answer changes the meeting only when it is
// about the time as it is now, for the invited mailbox, and from there: that address in From, or a
// signature of its domain; both, when the mail came to another address. Any other that came to the
// invitation's address is shown to the person as not verified. Answers may come twice and in any order.
func (m *Meeting) Answered(ctx context.Context, at string, reply *ics.Reply, signers func() []string) error {
	id, ok := reply.ID(m.host())
	if !ok || at != "" && id != protocol.MeetingID+"_"+at {
		return nil
	}
	var mail string
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		r, err := tx.Meetings().ByID(ctx, id)
		if err == nil && r.State == protocol.MeetingApproved {
			mail = r.Mail
		}
		return err
	})
	if err != nil || mail == "" {
		return storage.Missing(err, nil)
	}
	a := answer{Reply: reply, mail: mail, verified: strings.EqualFold(reply.From, mail)}
	if a.verified != (at != "") { // not both: a signature decides
		_, domain, _ := strings.Cut(strings.ToLower(mail), "@")
		a.verified = slices.Contains(signers(), domain)
	} else if at == "" {
		return nil
	}
	if !a.verified && at == "" {
		return nil
	}
	return m.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		r, _, err := locked(ctx, tx, id)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		return m.answered(ctx, tx, r, a)
	})
}

// An answer is a reply for one mailbox.
type answer struct {
	*ics.Reply
	mail     string
	verified bool
}

// answered stores an answer, and cancels the meeting that its requester declines.
func (m *Meeting) answered(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, a answer) error {
	next, ok := attendance(tx.Now, r, a)
	if !ok || r.Mail != a.mail || stateNow(tx, r) != protocol.MeetingApproved {
		return nil
	}
	r.Attends = &next
	if a.verified && next.Answer == protocol.AnswerDeclined {
		return m.move(ctx, tx, r, change{to: protocol.MeetingCancelled, note: "declined in answer to the invitation"})
	}
	if err := tx.Meetings().Save(ctx, r); err != nil || !a.verified || next.Answer != protocol.AnswerProposed {
		return err
	}
	title := fmt.Sprintf("%s (unverified) proposes another time", r.Name)
	if next.StartsAt != nil {
		title += ": " + next.StartsAt.UTC().Format("2 Jan 2006, 15:04 UTC")
	}
	return tx.Notify(ctx, protocol.Notice{Handle: r.Handle, Event: protocol.MeetingChanged, Subject: r.ID, Title: title})
}

// attendance returns what an answer says; not ok when it is of another time of the meeting, older than one
// that is known, the same, or says nothing.
func attendance(now time.Time, r *storage.StoredMeeting, a answer) (next storage.Attendance, ok bool) {
	stale := a.Stamp.Before(r.MovedAt.Truncate(time.Second)) // of the time before the last move, where there is no number that says so
	if a.Sequence >= 0 && a.Sequence != r.Sequence || a.Sequence < 0 && r.Sequence > 0 && stale || a.Stamp.After(now.Add(maxAhead)) {
		return next, false
	}
	next = storage.Attendance{Sequence: r.Sequence, Stamp: a.Stamp}
	next.At, next.Verified, next.Comment = now, a.verified, a.Comment
	for at, is := range a.Answers {
		if !strings.EqualFold(at, a.mail) {
			continue
		}
		switch {
		case a.Method == ics.MethodCounter:
			next.Answer = protocol.AnswerProposed
			counters(now, r, a, &next)
		case is == ics.Accepted:
			next.Answer = protocol.AnswerAccepted
		case is == ics.Tentative:
			next.Answer = protocol.AnswerTentative
		case is == ics.Declined:
			next.Answer = protocol.AnswerDeclined
		}
	}
	last := r.Attends
	if next.Answer == "" || last == nil || last.Sequence != r.Sequence {
		return next, next.Answer != ""
	}
	if next.Times += last.Times; next.Times > maxCounters && next.Answer == protocol.AnswerProposed || last.Verified && !a.verified {
		return next, false
	}
	same := last.Answer == next.Answer && sameTime(last.StartsAt, next.StartsAt) && sameTime(last.EndsAt, next.EndsAt) && last.Comment == next.Comment
	if last.Verified == a.verified && (a.Stamp.Before(last.Stamp) || a.Stamp.Equal(last.Stamp) && same) {
		return next, false
	}
	return next, true
}

// counters reads the time that a requester proposes, if it may be that of a meeting.
func counters(now time.Time, r *storage.StoredMeeting, a answer, next *storage.Attendance) {
	next.Times = 1
	length := r.EndsAt.Sub(r.StartsAt)
	if given := a.End.Sub(a.Start); !a.End.IsZero() && given >= 5*time.Minute && given <= 240*time.Minute {
		length = given
	}
	if a.Start.After(now) && a.Start.Before(now.Add(protocol.MaxMeetingDays*24*time.Hour)) {
		start, end := a.Start.UTC(), a.Start.UTC().Add(length)
		next.StartsAt, next.EndsAt = &start, &end
	}
}

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// Bounced stores that mail to the mailbox of a meeting came back for good; id is Letter.Bounce. The
// mailbox gets no more mail about meetings.
func (m *Meeting) Bounced(ctx context.Context, id string) error {
	return m.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return m.bounced(ctx, tx, protocol.MeetingID+"_"+id)
	})
}

func (m *Meeting) bounced(ctx context.Context, tx *storage.Tx, id string) error {
	r, _, err := locked(ctx, tx, id)
	if err != nil || r.Sent == protocol.MeetingMailBounced {
		return storage.Missing(err, nil)
	}
	box, err := tx.Meetings().Mailbox(ctx, r.Mailbox)
	if err != nil {
		return err
	}
	box.Bounced = true
	if box.SentAt.IsZero() {
		box.SentAt = tx.Now
	}
	r.Sent = protocol.MeetingMailBounced
	return errors.Join(tx.Meetings().PutMailbox(ctx, box), tx.Meetings().Save(ctx, r))
}
