package meeting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// reminders are how many hours before a meeting both sides are reminded of it.
var reminders = []int{24, 1}

// reminderJobs are the reminders of a meeting that was approved or moved. A further move enqueues others.
func reminderJobs(tx *storage.Tx, r *storage.StoredMeeting) (jobs []storage.Job) {
	for _, hours := range reminders {
		at := r.StartsAt.Add(-time.Duration(hours) * time.Hour)
		if r.State == protocol.MeetingApproved && at.After(tx.Now) {
			jobs = append(jobs, jobOf(storage.MeetingRemindJob, mailLane, subject{ID: r.ID, N: r.Moves, Hours: hours}, at))
		}
	}
	return jobs
}

// Remind reminds both sides of a meeting: its first job notifies the person and enqueues the mail to the
// requester, if there is to be one, of which the others each make one attempt. Each looks at the meeting
// again: one that was moved, cancelled or has begun is not reminded of, nor is a day's reminder sent within the
// last hour, which has its own.
func (m *Meeting) Remind(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	if s.Try == 0 {
		return func(ctx context.Context, tx *storage.Tx) error { return m.remindPerson(ctx, tx, j, s) }, nil
	}
	var l Letter
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		r, p, err := m.reminded(ctx, tx, s)
		if r == nil || err != nil || r.Mail == "" || m.Mail() == nil {
			return err
		}
		none, err := unwanted(ctx, tx, r.Mailbox)
		if err == nil && !none {
			l = m.reminder(r, p, s)
		}
		return err
	})
	if err != nil || l.To == "" {
		return nil, err
	}
	failed := m.Mail().Send(ctx, l, nil)
	return func(ctx context.Context, tx *storage.Tx) error {
		if errors.Is(failed, ErrMailbox) {
			return m.bounced(ctx, tx, s.ID)
		}
		if failed != nil {
			_, err := again(ctx, tx, j, s, failed)
			return err
		}
		return nil
	}, nil
}

// reminded returns the meeting that a reminder is about, nil when there is nothing to remind of.
func (m *Meeting) reminded(ctx context.Context, tx *storage.Tx, s subject) (*storage.StoredMeeting, side, error) {
	r, err := tx.Meetings().ByID(ctx, s.ID)
	if err != nil {
		return nil, side{}, storage.IfMissing(err, nil)
	}
	latest := r.StartsAt
	if s.Hours > 1 {
		latest = latest.Add(-time.Hour)
	}
	if r.Moves != s.N || r.State != protocol.MeetingApproved || !tx.Now.Before(latest) {
		return nil, side{}, nil
	}
	p, err := m.side(ctx, tx, r.Handle, r.Language)
	if err == nil && !*p.rules.Reminders {
		r = nil
	}
	return r, p, err
}

// remindPerson notifies the person, and enqueues the mail to the requester.
func (m *Meeting) remindPerson(ctx context.Context, tx *storage.Tx, j storage.Job, s subject) error {
	r, p, err := m.reminded(ctx, tx, s)
	if r == nil || err != nil {
		return err
	}
	title := fmt.Sprintf("%d min with %s (unverified), %s", minutes(r), r.Name, both(r.StartsAt, p.zone, r.TimeZone))
	if err := tx.Notify(ctx, protocol.Notice{Handle: r.Handle, Event: protocol.MeetingReminder, Subject: r.ID, Title: title}); err != nil {
		return err
	}
	if r.Mail == "" || !r.Confirmed {
		return nil
	}
	s.Try++
	return enqueue(ctx, tx, j.Kind, j.Lane, s, tx.Now)
}

// reminder returns the mail that reminds the requester.
func (m *Meeting) reminder(r *storage.StoredMeeting, p side, s subject) Letter {
	zone := cmp.Or(r.TimeZone, p.zone)
	text := []string{p.words.Text("You meet %s:", p.who), times(p.words, protocol.MeetingTime{StartsAt: r.StartsAt, EndsAt: r.EndsAt}, zone, p.zone)}
	l := m.complete(r, p, reminder, text)
	l.ID, l.Date = fmt.Sprintf("%s.%dh", letterID(r.ID, r.Moves), s.Hours), time.Time{}
	return l
}

// both returns a time in the zone of its reader, and in that of the other side where it is another.
func both(at time.Time, reader, other string) string {
	text := moment(at, reader)
	if other != "" && !sameClock(at, reader, other) {
		text += " (" + moment(at, other) + ")"
	}
	return text
}

// sameClock reports whether clocks of two zones show the same time at a moment.
func sameClock(at time.Time, zone, other string) bool {
	clock := func(name string) string { return at.In(zoneOr(name)).Format(time.RFC3339) }
	return clock(zone) == clock(other)
}

// zoneOr returns the zone with that name, UTC when there is none.
func zoneOr(name string) *time.Location {
	if zone, ok := protocol.Zone(name); ok {
		return zone
	}
	return time.UTC
}

// worded returns a time in a zone in the words of a language.
func worded(l hall.Words, at time.Time, zone string) string {
	return l.Time(at.In(zoneOr(zone)), "Mon 2 Jan 2006, 15:04 MST")
}

// moment returns a time in a zone, UTC when there is no such zone.
func moment(at time.Time, name string) string {
	return at.In(zoneOr(name)).Format("Mon 2 Jan 2006, 15:04 MST")
}
