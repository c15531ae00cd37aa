package credential

import (
	"context"
	"encoding/json"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
	"stoa/wellknown"
)

// SignDirectory makes the signed key directory that the owner of a key submits to
// the node with that address, as JSON. It is valid for seven days.
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

// Presigned stores the key directories that owners of keys signed for the node at
// Base.
type Presigned struct{ Base string }

// Put stores a signed key directory, which the node serves until its signature
// expires.
func (p Presigned) Put(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.SignedDirectory) (protocol.None, error) {
	var d wellknown.SignedDirectory
	if err := json.Unmarshal([]byte(in.Directory), &d); err != nil {
		return protocol.None{}, protocol.Errorf(protocol.InvalidRequest, "not a signed key directory: %w", err)
	}
	target, err := httpsig.ParseTarget(p.Base)
	if err != nil {
		return protocol.None{}, err
	}
	if err := d.Check(target, in.KeyID, tx.Now); err != nil {
		return protocol.None{}, err
	}
	k, err := tx.Keys().ByThumbprint(ctx, in.KeyID)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err,
			protocol.Errorf(protocol.NotFound, "no profile has the key %s; register it first: stoa admin key add", in.KeyID))
	}
	k.Directory = []byte(in.Directory)
	if err := tx.Keys().Put(ctx, *k); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "key directory", k.Handle, in.KeyID)
}
