package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"stoa/protocol"
)

// NotifySettings say where notices about a profile are sent.
type NotifySettings struct {
	Handle    string
	Mail      string // "" for none
	Confirmed bool   // the owner has confirmed the address
	Webhook   string // "" for none
	Events    []protocol.NoticeEvent
	Links     bool // notices of bids have links that decide
}

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
	s := NotifySettings{Handle: handle}
	var events string
	query := `SELECT mail, confirmed, webhook, events, links FROM notify WHERE handle = ?`
	if ps.tx.writes() {
		if err := ps.tx.dirty(); err != nil {
			return s, err
		}
		query += ps.tx.db.engine.ForUpdate()
	}
	err := ps.tx.row(ctx, query, handle).Scan(&s.Mail, &s.Confirmed, &s.Webhook, &events, &s.Links)
	if err == ErrNotFound {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(events), &s.Events); err != nil {
		return s, fmt.Errorf("events of @%s: %w", handle, err)
	}
	return s, nil
}

// PutNotifySettings stores the settings of a profile, replacing the previous ones.
func (ps Profiles) PutNotifySettings(ctx context.Context, s NotifySettings) error {
	events, err := json.Marshal(append([]protocol.NoticeEvent{}, s.Events...))
	if err != nil {
		return fmt.Errorf("encode events: %w", err)
	}
	_, err = ps.tx.write(ctx, `INSERT INTO notify (handle, mail, confirmed, webhook, events, links, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET mail = excluded.mail, confirmed = excluded.confirmed, webhook = excluded.webhook,
		events = excluded.events, links = excluded.links, updated_at = excluded.updated_at`,
		s.Handle, s.Mail, s.Confirmed, s.Webhook, string(events), s.Links, millis(ps.tx.Now))
	return err
}
