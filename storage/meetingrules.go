package storage

import (
	"context"
	"fmt"
	"time"

	"stoa/protocol"
)

// MeetingSettings are whether and when a person takes meetings, as they are stored.
type MeetingSettings struct {
	Handle    string
	Open      bool                  `db:"-"` // the profile takes meeting requests
	Rules     protocol.MeetingRules `db:"doc"`
	UpdatedAt time.Time             // zero for never
}

// Meetings reads and writes meeting requests, and the settings of those who are asked.
type Meetings struct{ tx *Tx }

func (tx *Tx) Meetings() Meetings { return Meetings{tx} }

var (
	meetingRulesTable = tableOf[MeetingSettings]("meeting_rules")
	meetingRules      = meetingRulesTable.from + `WHERE handle = ?`
)

// Settings returns the settings of a profile: of one that has written none, those of no rules. In a
// writing transaction the profile's row is locked by the caller (Profiles.ForUpdate).
func (ms Meetings) Settings(ctx context.Context, p *StoredProfile) (MeetingSettings, error) {
	s, err := orZero(find[MeetingSettings](ctx, ms.tx, meetingRules, p.Draft.Handle))
	s.Handle, s.Open = p.Draft.Handle, p.Open().Meetings
	return s, err
}

// PutSettings stores the settings of a profile, sets UpdatedAt, and shows in the profile and in the
// index of profiles whether it takes meeting requests.
func (ms Meetings) PutSettings(ctx context.Context, s *MeetingSettings) error {
	s.UpdatedAt = ms.tx.Now
	if err := meetingRulesTable.put(ctx, ms.tx, s, "handle"); err != nil {
		return fmt.Errorf("store meeting rules: %w", err)
	}
	r, err := ms.tx.Profiles().lock(ctx, s.Handle)
	if err != nil || r.Meetings == s.Open {
		return err
	}
	if _, err := ms.tx.write(ctx, `UPDATE profile SET meetings = ? WHERE seq = ?`, s.Open, r.Seq); err != nil {
		return err
	}
	if r.Meetings = s.Open; r.Listed {
		if err := ms.tx.Profiles().EnqueueTold(ctx, s.Handle); err != nil {
			return err
		}
	}
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
