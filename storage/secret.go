package storage

import "context"

// Stored returns the secret of that name; ErrNotFound when there is none.
func (ss Settings) Stored(ctx context.Context, name string) (value []byte, err error) {
	err = ss.tx.row(ctx, `SELECT value FROM secret WHERE name = ?`, name).Scan(&value)
	return value, err
}

// PutSecret stores a secret in place of an earlier one of that name.
func (ss Settings) PutSecret(ctx context.Context, name string, value []byte) error {
	return ss.tx.exec(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`, name, value)
}

// Secret returns the secret of that name, making it if there is none yet. All
// processes on the database get the same one. In a read it is ErrNotFound until it
// is made.
func (ss Settings) Secret(ctx context.Context, name string, make func() ([]byte, error)) ([]byte, error) {
	const text = `SELECT value FROM secret WHERE name = ?`
	var value []byte
	if err := ss.tx.row(ctx, text, name).Scan(&value); err != ErrNotFound || !ss.tx.writes() {
		return value, err
	}
	fresh, err := make()
	if err != nil {
		return nil, err
	}
	if _, err := ss.tx.write(ctx, `INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, fresh); err != nil {
		return nil, err
	}
	err = ss.tx.row(ctx, text, name).Scan(&value)
	return value, err
}
