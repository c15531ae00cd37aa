// Package calendar has the interface of the calendars that owners of meetings keep elsewhere, and
// the one for CalDAV servers (RFC 4791).
//
// A calendar does no storage and no retries. It makes one attempt and returns an error that says
// whether another one may succeed ([ErrTemporary]). The address of a server is written by an owner:
// the HTTP client must refuse what the owner may not reach, and everything that is read is bounded.
// No error contains the server's text, an address that was found, or a title of an event.
package calendar

import (
	"context"
	"errors"
	"time"

	"stoa/protocol/schedule"
)

// Limits of an HTTP client for calendars (outbound.Options).
const (
	Timeout = 10 * time.Second // of one exchange
	MaxBody = 5 << 20          // bytes of an answer
)

// Kinds of failure, for errors.Is. Only ErrTemporary is worth another attempt of the same request.
var (
	ErrTemporary   = errors.New("the calendar server cannot answer now")             // network, 408, 409, 425, 429, 5xx, an unreadable answer
	ErrCredentials = errors.New("the calendar server does not accept the password")  // 401: the owner must act
	ErrForbidden   = errors.New("the calendar server does not allow this")           // 403, 405, 507 and other refusals
	ErrNotFound    = errors.New("there is no calendar at this address")              // 404, 410 for the calendar itself, or nothing that can be used
	ErrConflict    = errors.New("another event has the place of this meeting")       // it is not touched
	ErrAddress     = errors.New("the address of the calendar is not allowed here")   // scheme, private address, another site
	ErrTooMuch     = errors.New("the calendar has more events than this node reads") // or a longer answer
)

// A Meeting is one event to keep in a calendar.
type Meeting struct {
	ID       string // the place of the event in the calendar, as a path segment: letters, digits, _ and -
	UID      string // of the event
	Sequence int    // an event with a greater one is newer
	Object   []byte // the event as iCalendar without METHOD
}

// A Calendar is one calendar of an owner. It is safe for concurrent use.
type Calendar interface {
	// Name is the provider's name on the wire, in lower case: it is stored.
	Name() string

	// Busy returns the busy times that touch the range, in no order, without the events of this node.
	Busy(ctx context.Context, from, to time.Time) ([]schedule.Interval, error)

	// Put makes the event, or replaces one with a smaller Sequence. It may be called again after
	// ErrTemporary: an event with the same or a greater Sequence stays as it is, with what the owner
	// changed in it. ErrConflict when the place has another event.
	Put(ctx context.Context, m Meeting) error

	// Delete deletes the event of a meeting; only ID and UID count. It returns nil when there is none.
	Delete(ctx context.Context, m Meeting) error
}
