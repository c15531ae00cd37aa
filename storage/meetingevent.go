package storage

import (
	"context"
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
	MeetingEventDoc `db:"doc"`
}

// A MeetingEventDoc is what is stored of an event and no statement looks for.
type MeetingEventDoc struct {
	URL      string `json:"url"`              // of the calendar
	Name     string `json:"name"`             // of the calendar
	Sequence int    `json:"sequence"`         // of what is on the calendar; -1 for nothing
	Reason   string `json:"reason,omitempty"` // why the last attempt failed
}

var meetingEventTable = tableOf[MeetingEvent]("meeting_event")

var meetingEvent = meetingEventTable.from + `WHERE meeting = ?`

// Event returns the event of a meeting; ErrNotFound when none is wanted on a calendar.
func (ms Meetings) Event(ctx context.Context, meeting string) (*MeetingEvent, error) {
	return pointer(find[MeetingEvent](ctx, ms.tx, meetingEvent, meeting))
}

// PutEvent stores the event of a meeting. The person's profile is locked.
func (ms Meetings) PutEvent(ctx context.Context, m *StoredMeeting, e *MeetingEvent) error {
	e.Meeting, e.Handle, e.Until = m.ID, m.Handle, m.EndsAt.Add(eventKept)
	return meetingEventTable.put(ctx, ms.tx, e, "meeting", "account", "state", "until", "doc")
}

const failedEvents = `SELECT meeting FROM meeting_event WHERE account = ? AND state = 'failed' ORDER BY meeting LIMIT 1000`

// FailedEvents returns the meetings whose events on an account were given up, a thousand at most.
func (ms Meetings) FailedEvents(ctx context.Context, account string) ([]string, error) {
	return list[string](ctx, ms.tx, failedEvents, account)
}

var meetingsAgreed = meetingTable.from + `WHERE handle = ? AND ends_at > ? AND state IN ('approved', 'done', 'no_show', 'cancelled')
	ORDER BY ends_at LIMIT 1000`

// Agreed returns the meetings of a person that were approved and end after a time, also those that were
// cancelled, the first thousand in their order.
func (ms Meetings) Agreed(ctx context.Context, handle string, after time.Time) ([]StoredMeeting, error) {
	return list[StoredMeeting](ctx, ms.tx, meetingsAgreed, handle, millis(after))
}

// PutFeed makes the feed of a person, in place of an earlier one, by the hash of its secret.
func (ms Meetings) PutFeed(ctx context.Context, handle string, hash [32]byte) error {
	return ms.tx.exec(ctx, `INSERT INTO meeting_feed (handle, hash, made_at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET hash = excluded.hash, made_at = excluded.made_at`, handle, hash[:], millis(ms.tx.Now))
}

// DropFeed ends the feed of a person.
func (ms Meetings) DropFeed(ctx context.Context, handle string) error {
	return ms.tx.exec(ctx, `DELETE FROM meeting_feed WHERE handle = ?`, handle)
}

// FeedMade returns when the feed of a person was made, nil when there is none.
func (ms Meetings) FeedMade(ctx context.Context, handle string) (*time.Time, error) {
	return orZero(find[*time.Time](ctx, ms.tx, `SELECT made_at FROM meeting_feed WHERE handle = ?`, handle))
}

const meetingFeed = `SELECT handle FROM meeting_feed WHERE hash = ?`

// FeedOf returns whose feed has a secret with that hash; ErrNotFound when none has.
func (ms Meetings) FeedOf(ctx context.Context, hash [32]byte) (string, error) {
	return find[string](ctx, ms.tx, meetingFeed, hash[:])
}
