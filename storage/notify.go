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
}

// NotifySettings returns the settings of a profile; if it has none, the zero
// settings with that handle. In a writing transaction the row is locked, so that it
// can be changed and written back.
func (tx *Tx) NotifySettings(ctx context.Context, handle string) (NotifySettings, error) {
	s := NotifySettings{Handle: handle}
	var events string
	query := `SELECT mail, confirmed, webhook, events FROM notify WHERE handle = ?`
	if tx.batch != nil {
		if err := tx.dirty(); err != nil {
			return s, err
		}
		query += tx.db.engine.forUpdate()
	}
	err := tx.row(ctx, query, handle).Scan(&s.Mail, &s.Confirmed, &s.Webhook, &events)
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
func (tx *Tx) PutNotifySettings(ctx context.Context, s NotifySettings) error {
	events, err := json.Marshal(append([]protocol.NoticeEvent{}, s.Events...))
	if err != nil {
		return fmt.Errorf("encode events: %w", err)
	}
	_, err = tx.write(ctx, `INSERT INTO notify (handle, mail, confirmed, webhook, events, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET mail = excluded.mail, confirmed = excluded.confirmed, webhook = excluded.webhook,
		events = excluded.events, updated_at = excluded.updated_at`, s.Handle, s.Mail, s.Confirmed, s.Webhook, string(events), millis(tx.Now))
	return err
}
