package erc8004

import (
	"context"
	"sync"
)

// A Memory stores the newest issuedAt of each (agent, signer), so that an old public record cannot
// be used again after a rotation or after the agent was sold and bought back. Both methods may be
// called concurrently; an error makes the Reader return [ErrUnavailable]. The id is canonical, the
// signer lower-case hex with 0x.
type Memory interface {
	// Newest returns the highest value so far, 0 for none.
	Newest(ctx context.Context, id, signer string) (uint64, error)
	// Raise stores issuedAt if it is higher than the stored value.
	Raise(ctx context.Context, id, signer string, issuedAt uint64) error
}

// memory is the default Memory of a Reader: it forgets at restart.
type memory struct {
	mu     sync.Mutex
	newest map[[2]string]uint64
}

func newMemory() *memory { return &memory{newest: map[[2]string]uint64{}} }

func (m *memory) Newest(_ context.Context, id, signer string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest[[2]string{id, signer}], nil
}

func (m *memory) Raise(_ context.Context, id, signer string, issuedAt uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := [2]string{id, signer}
	m.newest[k] = max(m.newest[k], issuedAt)
	return nil
}
