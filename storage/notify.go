package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// NotifySettings say where notices about a profile are sent.
type NotifySettings struct {
	Handle    string
	Mail      string // "" for none
	Confirmed bool   // the owner has confirmed the address
	Webhook   string // "" for none
	Events    []protocol.NoticeEvent
	Links     bool      // notices of bids have links that decide
	UpdatedAt time.Time // set by PutNotifySettings
}

var notifyTable = tableOf[NotifySettings]("notify")

// KeepLinks decides whether notices of bids have links that decide, after s was set in place of old
// by a caller that may decide itself, or may not: an address of its choice gives a token no more than
// its scopes.
func (s *NotifySettings) KeepLinks(old NotifySettings, may bool) {
	s.Links = may || old.Links && s.Mail == old.Mail && s.Webhook == old.Webhook
}

// NotifySettings returns the settings of a profile; if it has none, the zero
// settings with that handle. In a writing transaction the row is locked, so that it
// can be changed and written back.
func (ps Profiles) NotifySettings(ctx context.Context, handle string) (NotifySettings, error) {
	s, err := orZero(findLocked[NotifySettings](ctx, ps.tx, notifyTable.from+`WHERE handle = ?`, handle))
	s.Handle = handle
	return s, err
}

// PutNotifySettings stores the settings of a profile, replacing the previous ones.
func (ps Profiles) PutNotifySettings(ctx context.Context, s NotifySettings) error {
	s.UpdatedAt = ps.tx.Now
	return notifyTable.put(ctx, ps.tx, &s, "handle")
}
