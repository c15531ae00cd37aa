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
	return ts.tx.exec(ctx, `INSERT INTO client_message (thread_id, n, client_id) VALUES (?, ?, ?)`, threadID, n, clientID)
}

// MessagesFrom returns at most limit messages of a thread, oldest first, beginning
// with number n.
func (ts Threads) MessagesFrom(ctx context.Context, threadID string, n, limit int) ([]NumberedMessage, error) {
	rows, err := list[messageRow](ctx, ts.tx, messagesFrom, threadID, n, limit)
	all := make([]NumberedMessage, len(rows))
	for i, r := range rows {
		all[i] = NumberedMessage{r.N, r.ClientID, r.message()}
	}
	return all, err
}
