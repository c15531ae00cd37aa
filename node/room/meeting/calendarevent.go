package meeting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/node/out/calendar"
	"stoa/protocol"
	"stoa/protocol/ics"
	"stoa/protocol/netx"
	"stoa/storage"
)

// putEvent enqueues what the calendar of the person is to have of a meeting after a move: nothing before
// it is approved, then its event, and nothing again after it was cancelled.
func (m *Meeting) putEvent(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) error {
	if r.State != protocol.MeetingApproved && r.State != protocol.MeetingCancelled {
		return nil
	}
	e, err := tx.Meetings().Event(ctx, r.ID)
	if errors.Is(err, storage.ErrNotFound) {
		if r.State == protocol.MeetingCancelled {
			return nil
		}
		a, err := writer(ctx, tx, r.Handle)
		if err != nil || a == nil {
			return err
		}
		e = &storage.MeetingEvent{Account: a.ID, MeetingEventDoc: storage.MeetingEventDoc{URL: a.Writes, Name: nameOf(a, a.Writes), Sequence: -1}}
	} else if err != nil {
		return err
	}
	e.State, e.Reason = protocol.CalendarPending, ""
	if err := tx.Meetings().PutEvent(ctx, r, e); err != nil {
		return err
	}
	return enqueue(ctx, tx, storage.CalendarEventJob, calendarLane(e.Account), subject{ID: r.ID, N: r.Moves}, tx.Now)
}

// nameOf returns the name of a calendar of an account, or its address.
func nameOf(a *storage.CalendarAccount, address string) string {
	for _, f := range a.Found {
		if f.URL == address && f.Name != "" {
			return f.Name
		}
	}
	return address
}

// retryEvents enqueues the events on an account that were given up.
func (m *Meeting) retryEvents(ctx context.Context, tx *storage.Tx, account string) error {
	all, err := tx.Meetings().FailedEvents(ctx, account)
	for _, id := range all {
		r, missing := tx.Meetings().ByID(ctx, id)
		if errors.Is(missing, storage.ErrNotFound) {
			continue
		}
		e, other := tx.Meetings().Event(ctx, id)
		if err := errors.Join(err, missing, other); err != nil {
			return err
		}
		e.State = protocol.CalendarPending
		if err := tx.Meetings().PutEvent(ctx, r, e); err != nil {
			return err
		}
		if err := enqueue(ctx, tx, storage.CalendarEventJob, calendarLane(account), subject{ID: id, N: r.Moves}, tx.Now); err != nil {
			return err
		}
	}
	return err
}

// calendarView returns whether a meeting is on the person's calendar.
func calendarView(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting) (protocol.MeetingCalendar, error) {
	e, err := tx.Meetings().Event(ctx, r.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.MeetingCalendar{State: protocol.CalendarNone}, nil
	}
	return protocol.MeetingCalendar{State: e.State, Calendar: protocol.OrNil(e.Name), Reason: protocol.OrNil(e.Reason)}, err
}

// agreed reports whether a meeting was approved and not cancelled: it is on the calendar of the person.
func agreed(s protocol.MeetingState) bool {
	return s == protocol.MeetingApproved || s == protocol.MeetingDone || s == protocol.MeetingNoShow
}

// WriteEvent makes one attempt to bring the event of a meeting on the person's calendar in step with the
// meeting, whatever move enqueued it. It may run again: the event has one place, and one with the same
// sequence stays as it is.
func (m *Meeting) WriteEvent(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	var r *storage.StoredMeeting
	var e *storage.MeetingEvent
	var a *storage.CalendarAccount
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if r, err = tx.Meetings().ByID(ctx, s.ID); err != nil {
			return err
		}
		if e, err = tx.Meetings().Event(ctx, s.ID); err != nil {
			return err
		}
		a, err = tx.Calendars().ByID(ctx, e.Account)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	remove := r != nil && r.State == protocol.MeetingCancelled
	if err != nil || e.State != protocol.CalendarPending || !remove && !agreed(r.State) {
		return nil, err
	}
	ask, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	failed := m.writeEvent(ask, a, e.URL, r, remove)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		now, _, err := locked(ctx, tx, s.ID)
		if errors.Is(err, storage.ErrNotFound) || err == nil && now.Sequence != r.Sequence { // another move, whose job is next in the lane
			return nil
		}
		if err != nil {
			return err
		}
		return m.wroteEvent(ctx, tx, now, e.Account, s, remove, failed)
	}, nil
}

func (m *Meeting) writeEvent(ctx context.Context, a *storage.CalendarAccount, address string, r *storage.StoredMeeting, remove bool) error {
	server, err := m.server(a, address, "UTC")
	if err != nil {
		return err
	}
	one := calendar.Meeting{ID: r.ID, UID: ics.UID(r.ID, m.host()), Sequence: r.Sequence}
	if remove {
		return server.Delete(ctx, one)
	}
	if one.Object, err = m.ownEvent(r).Stored(); err != nil {
		return err
	}
	return server.Put(ctx, one)
}

// wroteEvent stores what became of an event, or enqueues another attempt.
func (m *Meeting) wroteEvent(ctx context.Context, tx *storage.Tx, r *storage.StoredMeeting, account string, s subject, remove bool, failed error) error {
	e, err := tx.Meetings().Event(ctx, r.ID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && e.Account != account { // it was disconnected meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	e.Reason = ""
	switch {
	case failed == nil && remove:
		e.State, e.Sequence = protocol.CalendarRemoved, -1
	case failed == nil:
		e.State, e.Sequence = protocol.CalendarWritten, r.Sequence
	case errors.Is(failed, calendar.ErrTemporary) && s.Try < eventAttempts:
		e.Reason = reason(failed)
		wait := netx.Jitter(netx.Backoff(askAgain, askLongest, s.Try+1))
		if err := enqueue(ctx, tx, storage.CalendarEventJob, calendarLane(account), subject{ID: s.ID, N: s.N, Try: s.Try + 1}, tx.Now.Add(wait)); err != nil {
			return err
		}
	default:
		e.State, e.Reason = protocol.CalendarFailed, reason(failed)
		if errors.Is(failed, calendar.ErrTemporary) {
			e.Reason = "the calendar server did not answer for a day; check the calendar again, and the event is written"
		}
		title := "Meeting at " + r.StartsAt.UTC().Format("2 Jan 2006, 15:04 UTC") + " is not on your calendar as it should be: " + e.Reason
		if err := tx.Notify(ctx, protocol.Notice{Handle: r.Handle, Event: protocol.CalendarTrouble, Subject: r.ID, Title: title}); err != nil {
			return err
		}
	}
	return tx.Meetings().PutEvent(ctx, r, e)
}

// ownEvent returns a meeting as the person's own calendar has it, with what the requester wrote, in which
// no link works.
func (m *Meeting) ownEvent(r *storage.StoredMeeting) ics.Event {
	text := []string{"Message from the requester (not verified):", plainText(r.Purpose), "Name: " + plainText(r.Name)}
	if r.Mail != "" {
		text = append(text, "Mail: "+r.Mail)
	}
	text = append(text, fmt.Sprintf("Approved on %s; move or cancel it there, so that the requester is told.", m.host()))
	return ics.Event{
		ID: r.ID, Node: m.host(), Summary: "Meeting with " + plainText(r.Name), Description: strings.Join(text, "\n\n"), Location: r.Location,
		Start: r.StartsAt, End: r.EndsAt, Stamp: r.MovedAt, Sequence: r.Sequence, Cancelled: r.State == protocol.MeetingCancelled, Alarm: 15 * time.Minute,
	}
}

// plainText returns a stranger's text in which programs make no links.
func plainText(s string) string { return strings.ReplaceAll(s, "://", "[:]//") }
