package storage

import (
	"context"
	"errors"
)

// Settings stand beside the secrets, under names of their own.
const settingPrefix = "setting "

// Setting reads a setting of the deployment, "" when it was never set.
func (tx *Tx) Setting(ctx context.Context, name string) (string, error) {
	var value []byte
	err := tx.row(ctx, `SELECT value FROM secret WHERE name = ?`, settingPrefix+name).Scan(&value)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return string(value), err
}

// PutSetting writes a setting of the deployment, and tells this process that the
// rules may have changed.
func (tx *Tx) PutSetting(ctx context.Context, name, value string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	tx.batch.opTopics[TopicRules] = true
	_, err := tx.write(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, settingPrefix+name, []byte(value))
	return err
}
