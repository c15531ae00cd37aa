package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// MeetingSettings are whether and when a person takes meetings, as they are stored.
type MeetingSettings struct {
	Handle    string
	Open      bool // the profile takes meeting requests
	Rules     protocol.MeetingRules
	UpdatedAt time.Time // zero for never
}

// Meetings reads and writes meeting requests, and the settings of those who are asked.
type Meetings struct{ tx *Tx }

func (tx *Tx) Meetings() Meetings { return Meetings{tx} }

const meetingRules = `SELECT doc, updated_at FROM meeting_rules WHERE handle = ?`

// Settings returns the settings of a profile: of one that has written none, those of no rules. In a
// writing transaction the profile's row is locked by the caller (Profiles.ForUpdate).
func (ms Meetings) Settings(ctx context.Context, p *StoredProfile) (MeetingSettings, error) {
	s := MeetingSettings{Handle: p.Draft.Handle, Open: p.Open().Meetings}
	var doc []byte
	var at int64
	err := ms.tx.row(ctx, meetingRules, s.Handle).Scan(&doc, &at)
	if err == ErrNotFound {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.UpdatedAt = moment(at)
	if err := json.Unmarshal(doc, &s.Rules); err != nil {
		return s, fmt.Errorf("meeting rules of @%s: %w", s.Handle, err)
	}
	return s, nil
}

// PutSettings stores the settings of a profile, sets UpdatedAt, and shows in the profile and in the
// index of profiles whether it takes meeting requests.
func (ms Meetings) PutSettings(ctx context.Context, s *MeetingSettings) error {
	doc, err := json.Marshal(s.Rules)
	if err != nil {
		return fmt.Errorf("encode meeting rules: %w", err)
	}
	s.UpdatedAt = ms.tx.Now
	if _, err := ms.tx.write(ctx, `INSERT INTO meeting_rules (handle, doc, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET doc = excluded.doc, updated_at = excluded.updated_at`, s.Handle, string(doc), millis(s.UpdatedAt)); err != nil {
		return fmt.Errorf("store meeting rules: %w", err)
	}
	r, err := ms.tx.Profiles().lock(ctx, s.Handle)
	if err != nil || r.Meetings == s.Open {
		return err
	}
	if _, err := ms.tx.write(ctx, `UPDATE profile SET meetings = ? WHERE seq = ?`, s.Open, r.Seq); err != nil {
		return err
	}
	r.Meetings = s.Open
	p, err := r.profile()
	if err != nil {
		return err
	}
	m, err := ms.tx.Merchants().of(ctx, r.Seq)
	if err != nil {
		return err
	}
	return ms.tx.Profiles().rerank(ctx, r, p, m)
}
