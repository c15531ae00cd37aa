package storage

import (
	"context"
	"errors"
)

// settingPrefix begins the names of settings, which are stored with the secrets.
const settingPrefix = "setting "

// Settings reads and writes the settings and secrets of the deployment.
type Settings struct{ tx *Tx }

func (tx *Tx) Settings() Settings { return Settings{tx} }

// Get returns a setting of the deployment, "" if it was never set. In a writing
// transaction it locks the setting: other writing transactions that read or write it
// wait until this one ends, so that no change is lost.
func (ss Settings) Get(ctx context.Context, name string) (string, error) {
	if ss.tx.writes() {
		if err := ss.tx.lockName(ctx, settingPrefix+name); err != nil {
			return "", err
		}
	}
	var value []byte
	err := ss.tx.row(ctx, `SELECT value FROM secret WHERE name = ?`, settingPrefix+name).Scan(&value)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return string(value), err
}

// Put stores a setting of the deployment.
func (ss Settings) Put(ctx context.Context, name, value string) error {
	if err := ss.tx.dirty(); err != nil {
		return err
	}
	if err := ss.tx.lockName(ctx, settingPrefix+name); err != nil {
		return err
	}
	return ss.tx.exec(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, settingPrefix+name,
		[]byte(value))
}
