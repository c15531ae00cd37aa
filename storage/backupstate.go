package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// backupState is the name of the setting that holds a BackupState, and backupMade of the time of the last copy.
const (
	backupState = "backup state"
	backupMade  = "backup"
)

// A BackupState is what is known of the backups that the node makes by itself, and of stoa admin backup.
type BackupState struct {
	MadeAt    time.Time     `json:"madeAt"` // of the last one, by whatever way; zero for never
	Name      string        `json:"name"`   // of the last one that is kept
	Bytes     int64         `json:"bytes"`
	Rows      int64         `json:"rows"`
	Took      time.Duration `json:"took"`
	Sealed    bool          `json:"sealed"`    // encrypted to a recipient
	CheckedAt time.Time     `json:"checkedAt"` // when one was restored on trial, and was sound
	Checked   string        `json:"checked"`   // its name
	CheckTook time.Duration `json:"checkTook"`
	Failures  int           `json:"failures"` // in a row
	Failed    int64         `json:"failed"`   // ever
	LastError string        `json:"lastError"`
	NextAt    time.Time     `json:"nextAt"`  // when the next one is due
	Owner     string        `json:"owner"`   // process that makes one now
	Running   string        `json:"running"` // its name
	LeaseEnd  time.Time     `json:"leaseEnd"`
	TriedAt   time.Time     `json:"triedAt"` // first try since the last that was made; zero for none
	Told      bool          `json:"told"`    // operators know that it does not work

	Parts map[int64]CopiedPart `json:"parts,omitempty"` // by month
}

// A CopiedPart is the copy of a file of old posts.
type CopiedPart struct {
	Name    string `json:"name"`
	Version string `json:"version"` // Part.Version of what was copied
}

// Backup reads the state of the backups; the zero state before the first.
func (ss Settings) Backup(ctx context.Context) (s BackupState, err error) {
	text, err := ss.Get(ctx, backupState)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the state of backups: %w", err)
	}
	made, err := ss.Get(ctx, backupMade)
	if at, e := time.Parse(time.RFC3339, made); e == nil && at.After(s.MadeAt) {
		s.MadeAt = at
	}
	return s, err
}

// PutBackup stores the state of the backups.
func (ss Settings) PutBackup(ctx context.Context, s BackupState) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = ss.Put(ctx, backupState, string(raw))
	}
	return err
}

// ClaimBackup gives a process the right to make a backup until a time; false while another one has it that has not ended. It returns the
// state as it was.
func (ss Settings) ClaimBackup(ctx context.Context, owner string, until time.Time, ended func(owner string) bool) (BackupState, bool, error) {
	s, err := ss.Backup(ctx)
	if err != nil || s.Owner != "" && s.Owner != owner && s.LeaseEnd.After(ss.tx.Now) && !ended(s.Owner) {
		return s, false, err
	}
	next := s
	next.Owner, next.LeaseEnd = owner, until
	if next.TriedAt.IsZero() {
		next.TriedAt = ss.tx.Now
	}
	return s, true, ss.PutBackup(ctx, next)
}

// BackupMade records that a copy of the database was made.
func (ss Settings) BackupMade(ctx context.Context) error {
	return ss.Put(ctx, backupMade, ss.tx.Now.Format(time.RFC3339))
}
