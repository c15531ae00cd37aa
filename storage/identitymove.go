package storage

import (
	"context"
	"fmt"
	"math"
	"time"
)

// An IdentityMove is the last change of the owner of a chain identity that this node saw.
type IdentityMove struct {
	Agent  string    // chain identity, in lower case
	Owner  string    // address in lower case; "" for an identity that is gone
	Former string    // the owner before; "" when not known
	Block  int64     // of the transfer; without Exact a later one, at which the chain named the owner
	At     time.Time // when this node saw it
	Exact  bool      // the transfer was seen, and not only that there is another owner
}

var identityMoveTable = tableOf[IdentityMove]("identity_move")

// Moves reads and writes changes of the owners of chain identities.
type Moves struct{ tx *Tx }

func (tx *Tx) Moves() Moves { return Moves{tx} }

// Note stores a change of now in place of an earlier one. That an identity has another owner says nothing where the transfer to that
// owner is known.
func (ms Moves) Note(ctx context.Context, m IdentityMove) error {
	m.At = ms.tx.Now
	old, err := ms.Last(ctx, m.Agent)
	if err != nil {
		return err
	}
	if same := old.Owner == m.Owner; old.Agent != "" && !(same && m.Exact && !old.Exact) {
		newer := m.Block > old.Block || m.Block == old.Block && m.Exact && !same // of several in one block the last
		if !newer || same && !m.Exact {
			return nil
		}
	}
	return identityMoveTable.put(ctx, ms.tx, &m, "agent")
}

// Last returns the last change of an identity; all is zero when this node saw none.
func (ms Moves) Last(ctx context.Context, agent string) (IdentityMove, error) {
	return orZero(find[IdentityMove](ctx, ms.tx, identityMoveTable.from+`WHERE agent = ?`, agent))
}

const movesForgotten = `DELETE FROM identity_move WHERE agent > ? AND agent < ? AND block > ?`

// Forget deletes the changes of a chain after a block, which the chain may have replaced.
func (ms Moves) Forget(ctx context.Context, chain, after uint64) error {
	prefix := fmt.Sprintf("eip155:%d", chain)
	return ms.tx.exec(ctx, movesForgotten, prefix+":", prefix+";", int64(min(after, math.MaxInt64))) // ; is the character after :
}

// Knows reports whether a chain identity has a profile, has written here, or has begun something here.
func (ms Moves) Knows(ctx context.Context, agent string) (bool, error) {
	if known, err := ms.tx.Keys().KnownIdentity(ctx, agent); err != nil || known {
		return known, err
	}
	return ms.tx.Begun().Has(ctx, agent)
}

const arrived = `SELECT since_at FROM feedback_agent WHERE agent = ? AND owner = ? AND since > 0`

// Arrived returns when the present owner of an identity got it, by the transfers that were read with its reviews; the zero time when that
// is not known.
func (ms Moves) Arrived(ctx context.Context, agent, owner string) (time.Time, error) {
	return orZero(find[time.Time](ctx, ms.tx, arrived, agent, owner))
}
