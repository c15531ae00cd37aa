package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// eventKept is how long after a meeting it is known on which calendar its event is.
const eventKept = 31 * 24 * time.Hour

// A MeetingEvent is the event of a meeting on a calendar of the person.
type MeetingEvent struct {
	Meeting, Handle string
	Account         string // of the calendar
	State           protocol.CalendarState
	Until           time.Time // when this is deleted
	MeetingEventDoc
}

// A MeetingEventDoc is what is stored of an event and no statement looks for.
type MeetingEventDoc struct {
	URL      string `json:"url"`              // of the calendar
	Name     string `json:"name"`             // of the calendar
	Sequence int    `json:"sequence"`         // of what is on the calendar; -1 for nothing
	Reason   string `json:"reason,omitempty"` // why the last attempt failed
}

const meetingEventColumns = `meeting, handle, account, state, until, doc`

func scanMeetingEvent(s scanner) (e MeetingEvent, err error) {
	var until int64
	var doc []byte
	if err = s.Scan(&e.Meeting, &e.Handle, &e.Account, &e.State, &until, &doc); err != nil {
		return e, err
	}
	e.Until = moment(until)
	if err = json.Unmarshal(doc, &e.MeetingEventDoc); err != nil {
		err = fmt.Errorf("event of meeting %s: %w", e.Meeting, err)
	}
	return e, err
}

const meetingEvent = `SELECT ` + meetingEventColumns + ` FROM meeting_event WHERE meeting = ?`

// Event returns the event of a meeting; ErrNotFound when none is wanted on a calendar.
func (ms Meetings) Event(ctx context.Context, meeting string) (*MeetingEvent, error) {
	e, err := scanMeetingEvent(ms.tx.row(ctx, meetingEvent, meeting))
	return &e, err
}

// PutEvent stores the event of a meeting. The person's profile is locked.
func (ms Meetings) PutEvent(ctx context.Context, m *StoredMeeting, e *MeetingEvent) error {
	doc, err := json.Marshal(e.MeetingEventDoc)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	e.Meeting, e.Handle, e.Until = m.ID, m.Handle, m.EndsAt.Add(eventKept)
	_, err = ms.tx.write(ctx, `INSERT INTO meeting_event (`+meetingEventColumns+`) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (meeting) DO UPDATE SET account = excluded.account, state = excluded.state, until = excluded.until, doc = excluded.doc`,
		e.Meeting, e.Handle, e.Account, string(e.State), millis(e.Until), string(doc))
	return err
}

const failedEvents = `SELECT meeting FROM meeting_event WHERE account = ? AND state = 'failed' ORDER BY meeting LIMIT 1000`

// FailedEvents returns the meetings whose events on an account were given up, a thousand at most.
func (ms Meetings) FailedEvents(ctx context.Context, account string) ([]string, error) {
	rows, err := ms.tx.query(ctx, failedEvents, account)
	return collect(rows, err, func(s scanner) (id string, err error) { return id, s.Scan(&id) })
}

const meetingsAgreed = `SELECT ` + meetingColumns + ` FROM meeting WHERE handle = ? AND ends_at > ? AND state IN ('approved', 'done', 'no_show', 'cancelled')
	ORDER BY ends_at LIMIT 1000`

// Agreed returns the meetings of a person that were approved and end after a time, also those that were
// cancelled, the first thousand in their order.
func (ms Meetings) Agreed(ctx context.Context, handle string, after time.Time) ([]StoredMeeting, error) {
	rows, err := ms.tx.query(ctx, meetingsAgreed, handle, millis(after))
	return collect(rows, err, scanMeeting)
}

// PutFeed makes the feed of a person, in place of an earlier one, by the hash of its secret.
func (ms Meetings) PutFeed(ctx context.Context, handle string, hash [32]byte) error {
	_, err := ms.tx.write(ctx, `INSERT INTO meeting_feed (handle, hash, made_at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET hash = excluded.hash, made_at = excluded.made_at`, handle, hash[:], millis(ms.tx.Now))
	return err
}

// DropFeed ends the feed of a person.
func (ms Meetings) DropFeed(ctx context.Context, handle string) error {
	_, err := ms.tx.write(ctx, `DELETE FROM meeting_feed WHERE handle = ?`, handle)
	return err
}

// FeedMade returns when the feed of a person was made, nil when there is none.
func (ms Meetings) FeedMade(ctx context.Context, handle string) (*time.Time, error) {
	var at int64
	err := ms.tx.row(ctx, `SELECT made_at FROM meeting_feed WHERE handle = ?`, handle).Scan(&at)
	if err == ErrNotFound {
		return nil, nil
	}
	return momentPtr(&at), err
}

const meetingFeed = `SELECT handle FROM meeting_feed WHERE hash = ?`

// FeedOf returns whose feed has a secret with that hash; ErrNotFound when none has.
func (ms Meetings) FeedOf(ctx context.Context, hash [32]byte) (handle string, err error) {
	err = ms.tx.row(ctx, meetingFeed, hash[:]).Scan(&handle)
	return handle, err
}
