package storage

import (
	"context"
	"errors"
)

// Settings are stored with the secrets, under names with this prefix.
const settingPrefix = "setting "

// Setting reads a setting of the deployment, "" if it was never set. In a writing
// transaction, others that read or write the same setting wait for its end, so that
// no change is lost.
func (tx *Tx) Setting(ctx context.Context, name string) (string, error) {
	if tx.batch != nil {
		if err := tx.lockName(ctx, settingPrefix+name); err != nil {
			return "", err
		}
	}
	var value []byte
	err := tx.row(ctx, `SELECT value FROM secret WHERE name = ?`, settingPrefix+name).Scan(&value)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return string(value), err
}

// PutSetting writes a setting of the deployment, and informs this process that the
// rules may have changed.
func (tx *Tx) PutSetting(ctx context.Context, name, value string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	if err := tx.lockName(ctx, settingPrefix+name); err != nil {
		return err
	}
	tx.batch.opTopics[TopicRules] = true
	_, err := tx.write(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, settingPrefix+name, []byte(value))
	return err
}
