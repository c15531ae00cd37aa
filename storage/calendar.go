package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A CalendarAccount is an account of a person at a calendar server. Sealed is its password, encrypted
// under the node's master key.
type CalendarAccount struct {
	ID, Handle           string
	Sealed               []byte
	CreatedAt, UpdatedAt time.Time
	CalendarDoc          `db:"doc"`
}

// A CalendarDoc is what is stored of an account and no statement looks for.
type CalendarDoc struct {
	Address  string                   `json:"address"` // as the owner wrote it
	User     string                   `json:"user"`
	Found    []protocol.FoundCalendar `json:"found,omitempty"` // on the server, at the last check
	Mails    []string                 `json:"mails,omitempty"` // of the owner, as the server knows them
	Reads    []string                 `json:"reads,omitempty"` // addresses of the calendars that are read
	Writes   string                   `json:"writes,omitempty"`
	Create   string                   `json:"create,omitempty"` // name of a calendar to be made
	Checking bool                     `json:"checking,omitempty"`
	Round    int                      `json:"round"`            // readings of an earlier round do not go on
	Tag      string                   `json:"tag,omitempty"`    // of what was read last
	Full     time.Time                `json:"full,omitzero"`    // when everything was read last
	OKAt     time.Time                `json:"okAt,omitzero"`    // when the server last did what was asked
	Failed   string                   `json:"failed,omitempty"` // why it did not, last; "" once it did
	FailedAt time.Time                `json:"failedAt,omitzero"`
	Failures int                      `json:"failures,omitempty"` // in a row
}

var calendarTable = tableOf[CalendarAccount]("calendar_account")

// Calendars reads and writes the accounts of persons at calendar servers, and what was read there. Who
// changes an account locks the person's profile first (Profiles.ForUpdate).
type Calendars struct{ tx *Tx }

func (tx *Tx) Calendars() Calendars { return Calendars{tx} }

// ByID returns an account; ErrNotFound when there is none.
func (cs Calendars) ByID(ctx context.Context, id string) (*CalendarAccount, error) {
	return orNil(find[CalendarAccount](ctx, cs.tx, calendarTable.from+`WHERE id = ?`, id))
}

// OfProfile returns the accounts of a profile, the oldest first.
func (cs Calendars) OfProfile(ctx context.Context, handle string) ([]CalendarAccount, error) {
	return list[CalendarAccount](ctx, cs.tx, calendarTable.from+`WHERE handle = ? ORDER BY id LIMIT ?`, handle, protocol.MaxLimit)
}

// Put stores an account. A new one gets an id. Busy times are kept for accounts that are read only.
func (cs Calendars) Put(ctx context.Context, a *CalendarAccount) error {
	if a.ID == "" {
		a.ID, a.CreatedAt = protocol.NewID(protocol.CalendarID, cs.tx.Now), cs.tx.Now
	}
	a.UpdatedAt = cs.tx.Now
	if err := calendarTable.put(ctx, cs.tx, a, "id", "sealed", "doc", "updated_at"); err != nil {
		return err
	}
	if len(a.Reads) == 0 {
		return cs.tx.exec(ctx, `DELETE FROM calendar_busy WHERE account = ?`, a.ID)
	}
	return cs.tx.exec(ctx, `INSERT INTO calendar_busy (account, handle, read_at, spans) VALUES (?, ?, 0, ?) ON CONFLICT DO NOTHING`, a.ID, a.Handle, []byte{})
}

// Delete deletes an account, with what was read there and what is known of the events on it.
func (cs Calendars) Delete(ctx context.Context, id string) error {
	for _, text := range []string{`DELETE FROM calendar_busy WHERE account = ?`, `DELETE FROM meeting_event WHERE account = ?`,
		`DELETE FROM calendar_account WHERE id = ?`} {
		if _, err := cs.tx.write(ctx, text, id); err != nil {
			return err
		}
	}
	return nil
}

// CalendarBusy is what was read at one account.
type CalendarBusy struct {
	ReadAt time.Time // zero for never
	Spans  []byte    // as package meeting packs them
}

const calendarBusy = `SELECT read_at, spans FROM calendar_busy WHERE handle = ? LIMIT 100`

// Busy returns what was read at each account of a profile whose calendars are read.
func (cs Calendars) Busy(ctx context.Context, handle string) ([]CalendarBusy, error) {
	return list[CalendarBusy](ctx, cs.tx, calendarBusy, handle)
}

// BusyReadAt returns when an account was read last, the zero time for never.
func (cs Calendars) BusyReadAt(ctx context.Context, account string) (time.Time, error) {
	var at int64
	err := cs.tx.row(ctx, `SELECT read_at FROM calendar_busy WHERE account = ?`, account).Scan(&at)
	return moment(at), orNothing(err)
}

// PutBusy stores when an account was read, and what; spans that are nil stay as they are.
func (cs Calendars) PutBusy(ctx context.Context, account string, spans []byte) error {
	if spans == nil {
		_, err := cs.tx.write(ctx, `UPDATE calendar_busy SET read_at = ? WHERE account = ?`, millis(cs.tx.Now), account)
		return err
	}
	return cs.tx.exec(ctx, `UPDATE calendar_busy SET read_at = ?, spans = ? WHERE account = ?`, millis(cs.tx.Now), spans, account)
}
