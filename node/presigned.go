package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
	"stoa/wellknown"
)

// SignDirectory makes the signed key directory that the owner of a key hands in
// at the node with that address, as JSON. It is good for seven days.
func SignDirectory(base string, pair key.Pair) ([]byte, error) {
	target, err := httpsig.ParseTarget(base)
	if err != nil {
		return nil, err
	}
	d, err := wellknown.SignDirectory(target, pair)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(d, "", "  ")
}

// PutDirectory stores the key directory that the owner of a key signed, for the
// node to serve until its signature runs out.
func (a *Admin) PutDirectory(ctx context.Context, thumbprint string, raw []byte) error {
	var d wellknown.SignedDirectory
	if err := json.Unmarshal(raw, &d); err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "not a signed key directory: %w", err)
	}
	target, err := httpsig.ParseTarget(a.Base)
	if err != nil {
		return err
	}
	if err := d.Check(target, thumbprint, time.Now()); err != nil {
		return err
	}
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		k, err := tx.AgentKeyByThumbprint(ctx, thumbprint)
		if errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "no profile has the key %s; register it first: stoa admin key add", thumbprint)
		}
		if err != nil {
			return err
		}
		k.Directory = raw
		if err := tx.PutAgentKey(ctx, *k); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "key directory", k.Handle, thumbprint)
	})
}
