package storage

import (
	"context"
	"errors"
)

// settingPrefix begins the names of settings, which are stored with the secrets.
const settingPrefix = "setting "

// Setting returns a setting of the deployment, "" if it was never set. In a writing
// transaction it locks the setting: other writing transactions that read or write it
// wait until this one ends, so that no change is lost.
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

// PutSetting stores a setting of the deployment, and makes this process read the
// rules again.
func (tx *Tx) PutSetting(ctx context.Context, name, value string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	if err := tx.lockName(ctx, settingPrefix+name); err != nil {
		return err
	}
	tx.batch.opTopics[TopicRules] = true
	_, err := tx.write(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, settingPrefix+name,
		[]byte(value))
	return err
}
