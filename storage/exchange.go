package storage

import (
	"context"

	"stoa/protocol"
)

// A NumberedMessage is a message of a thread with its number and the id that its
// writer gave it, "" for none.
type NumberedMessage struct {
	N        int
	ClientID string
	protocol.Message
}

// SetClientID stores the id that the writer gave to a message.
func (ts Threads) SetClientID(ctx context.Context, threadID string, n int, clientID string) error {
	_, err := ts.tx.write(ctx, `INSERT INTO client_message (thread_id, n, client_id) VALUES (?, ?, ?)`, threadID, n, clientID)
	return err
}

// MessagesFrom returns at most limit messages of a thread, oldest first, beginning
// with number n.
func (ts Threads) MessagesFrom(ctx context.Context, threadID string, n, limit int) ([]NumberedMessage, error) {
	rows, err := ts.tx.query(ctx, `SELECT m.n, m.id, m.side, m.author, m.text, m.at, COALESCE(c.client_id, '')
		FROM thread_message m LEFT JOIN client_message c ON c.thread_id = m.thread_id AND c.n = m.n
		WHERE m.thread_id = ? AND m.n >= ? ORDER BY m.n LIMIT ?`, threadID, n, limit)
	return collect(rows, err, func(s scanner) (m NumberedMessage, err error) {
		found, err := scanMessage(withClientID{s, &m.ClientID})
		m.N, m.Message = int(found.n), found.Message
		return m, err
	})
}

// withClientID scans one more column after those of a message.
type withClientID struct {
	scanner
	clientID *string
}

func (w withClientID) Scan(dest ...any) error { return w.scanner.Scan(append(dest, w.clientID)...) }
