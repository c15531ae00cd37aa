package storage

import (
	"context"
	"sync"
	"time"

	"stoa/protocol"
)

// A Memo keeps in memory what is slow to count. If Renew is called regularly,
// readers never wait; otherwise one of them counts again. The zero Memo with Age
// and Count is ready; it must not be copied.
type Memo[T any] struct {
	Age   time.Duration                                                   // age at which it is renewed; values read are at most twice as old
	Count func(ctx context.Context, tx *Tx, last *T) (fresh T, err error) // last is the previous value, nil at first; one call at a time

	counting sync.Mutex
	mu       sync.Mutex // guards the rest
	last     *T
	at       time.Time
	asked    bool // since it was last counted
}

// Get returns the last value. While one caller counts, the others get the previous
// value; if there is none, their error tells them to retry.
func (m *Memo[T]) Get(ctx context.Context, tx *Tx) (T, error) {
	m.mu.Lock()
	last, age := m.last, tx.Now.Sub(m.at)
	m.asked = true
	m.mu.Unlock()
	if last != nil && age < 2*m.Age {
		return *last, nil
	}
	if !m.counting.TryLock() {
		if last != nil {
			return *last, nil
		}
		var none T
		return none, &protocol.Error{Code: protocol.Overloaded, RetryAfter: 5 * time.Second, Detail: "This is being counted; ask again in a moment."}
	}
	defer m.counting.Unlock()
	return m.count(ctx, tx)
}

// Renew counts again if the value was read since it was last counted and is older
// than Age.
func (m *Memo[T]) Renew(ctx context.Context, db *DB) error {
	m.mu.Lock()
	due := m.asked && db.sql.Clock().Sub(m.at) >= m.Age
	m.mu.Unlock()
	if !due || !m.counting.TryLock() {
		return nil
	}
	defer m.counting.Unlock()
	return db.readLong(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := m.count(ctx, tx)
		return err
	})
}

func (m *Memo[T]) count(ctx context.Context, tx *Tx) (T, error) {
	fresh, err := m.Count(ctx, tx, m.last) // only written under counting
	if err != nil {
		return fresh, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.at, m.asked = &fresh, tx.Now, false
	return fresh, nil
}
