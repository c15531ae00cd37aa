package storage

import (
	"context"
	"time"
)

// A StateProof is what a registry held about a chain identity in one block, with the proof of it. The node that reads the chain may be
// the only one that still has it: endpoints keep the state of some blocks only.
type StateProof struct {
	ID  string    // identity and hash of the block, separated by a space
	Doc []byte    // as the room writes it
	At  time.Time // when it was read
}

var stateProofTable = tableOf[StateProof]("state_proof")

// PutStateProof stores a proof, unless it is there.
func (ks Keys) PutStateProof(ctx context.Context, p StateProof) error {
	_, err := stateProofTable.add(ctx, ks.tx, &p)
	return err
}

// StateProof returns the proof with an id, or ErrNotFound.
func (ks Keys) StateProof(ctx context.Context, id string) (StateProof, error) {
	return find[StateProof](ctx, ks.tx, stateProofTable.from+`WHERE id = ?`, id)
}
