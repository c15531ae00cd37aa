package credential

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Rotation of the node's Ed25519 key, which signs its requests, activities, receipts and the node's key directory. A rotation names the
// next key and when it begins (nbf), and when the former one ends (exp). Both are in the key directory and in the actors' documents from the
// command on, so that whoever has read them takes signatures of either. A process signs with the key of the time when it started:
// everything that it keeps in memory was made with that one. Its RSA key, for servers that know no other, and its P-256 key, for agent
// cards, are replaced with it: a process that starts after the command has the next ones under the ids of the former. Servers fetch
// the RSA key again when a signature does not fit the one that they know; an actor's document has room for one. GoToSocial does
// not: while the former Ed25519 key is taken, the former RSA key signs again what a server has refused with 401.

// secretTurns is the secret with the turns; without it, the key of secretEd25519 has no bounds. secretFormer is the turn of the former RSA key.
const (
	secretTurns  = "node-ed25519-turns"
	secretFormer = "node-rsa-former"
)

// maxTurns is how many keys are kept, former ones to verify the node's own receipts.
const maxTurns = 50

// A turn is a key of the node's and its time.
type turn struct {
	JWK   json.RawMessage `json:"jwk"`            // private; public once it has ended
	From  time.Time       `json:"from,omitzero"`  // zero: always
	Until time.Time       `json:"until,omitzero"` // zero: until another one follows
}

func (t turn) ended(now time.Time) bool { return !t.Until.IsZero() && !now.Before(t.Until) }

func (t turn) pair() (key.Pair, error) {
	p, err := key.ParsePair(t.JWK)
	return p.Between(t.From, t.Until), err
}

// readTurns reads the turns, the oldest first.
func (k *Keyring) readTurns(ctx context.Context, tx *storage.Tx) (turns []turn, err error) {
	if err := k.readJSON(ctx, tx, secretTurns, &turns); !errors.Is(err, storage.ErrNotFound) {
		return turns, err
	}
	raw, err := k.first.MarshalPrivate()
	return []turn{{JWK: raw}}, err
}

func (k *Keyring) readJSON(ctx context.Context, tx *storage.Tx, name string, into any) error {
	sealed, err := tx.Settings().Stored(ctx, name)
	if err != nil {
		return err
	}
	plain, err := k.sealer.Open(storage.PurposeSecret(name), sealed)
	if err != nil {
		return fmt.Errorf("open secret %s: %w", name, err)
	}
	return json.Unmarshal(plain, into)
}

func (k *Keyring) putJSON(ctx context.Context, tx *storage.Tx, name string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.Settings().PutSecret(ctx, name, k.sealer.Seal(storage.PurposeSecret(name), plain))
}

// A published is what Keyring.Refresh read: the keys that have not ended, and the public halves of all.
type published struct {
	at     time.Time // when it was read, up to a minute ago
	pairs  []key.Pair
	all    []key.Public
	former key.Pair // of RSA, zero where there is none
}

// Refresh reads which keys the node has now.
func (k *Keyring) Refresh(ctx context.Context) error {
	var turns []turn
	var former turn
	found := published{}
	err := k.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		found.at = tx.Now
		if turns, err = k.readTurns(ctx, tx); err != nil {
			return err
		}
		return storage.IfMissing(k.readJSON(ctx, tx, secretFormer, &former), nil)
	})
	if err != nil {
		return err
	}
	now := found.at
	if former.Until.After(now) {
		if found.former, err = former.pair(); err != nil {
			return err
		}
	}
	for _, t := range turns {
		if t.ended(now) {
			public, err := key.ParsePublic(t.JWK)
			if pair, private := t.pair(); private == nil {
				public, err = pair.Published(), nil
			}
			if err != nil {
				return err
			}
			found.all = append(found.all, public)
			continue
		}
		p, err := t.pair()
		if err != nil {
			return err
		}
		found.pairs, found.all = append(found.pairs, p), append(found.all, p.Published())
	}
	for i := range found.all { // what verifies the node's own receipts has no bounds
		found.all[i].NotBefore, found.all[i].Expires = time.Time{}, time.Time{}
	}
	k.now.Store(&found)
	return nil
}

// current is the key that a process that starts now signs with: the newest one that has begun.
func (k *Keyring) current() (key.Pair, error) {
	now := k.now.Load()
	for _, p := range slices.Backward(now.pairs) {
		if from, _ := p.Bounds(); !from.After(now.at) {
			return p.Between(time.Time{}, time.Time{}), nil
		}
	}
	return key.Pair{}, errors.New("no key of the node is valid now: its clock is behind, or its keys were changed by hand")
}

const refreshEvery = time.Minute

// Run reads the node's keys again every minute, until ctx ends: another process may have begun a rotation.
func (k *Keyring) Run(ctx context.Context, log *slog.Logger) error {
	t := time.NewTicker(refreshEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		if err := k.Refresh(ctx); err != nil {
			log.Error("keys of the node", "err", err)
			continue
		}
		if p, err := k.current(); err == nil && p.Thumbprint() != k.Ed.Thumbprint() {
			log.Warn("the node has another key now: restart it to sign with that", "key", p.Thumbprint(), "now", k.Ed.Thumbprint())
		}
	}
}

// Node implements wellknown.Keys. The key that this process signs with is always among them, without an end before it is restarted.
func (k *Keyring) Node(context.Context) ([]key.Pair, error) {
	pairs := []key.Pair{k.P256}
	signs, now := k.Ed, k.now.Load()
	for _, p := range now.pairs {
		if _, until := p.Bounds(); p.Thumbprint() != k.Ed.Thumbprint() {
			pairs = append(pairs, p)
		} else if until.After(now.at) {
			signs = p
		}
	}
	return slices.Insert(pairs, 0, signs), nil
}

// Others are the Ed25519 keys that are valid or will be, besides the one that this process signs with.
func (k *Keyring) Others() (keys []ed25519.PublicKey) {
	for _, p := range k.now.Load().pairs {
		if public, ok := p.Public().(ed25519.PublicKey); ok && p.Thumbprint() != k.Ed.Thumbprint() {
			keys = append(keys, public)
		}
	}
	return keys
}

// FormerRSA is the RSA key before this one, zero once servers have had the time to fetch this one.
func (k *Keyring) FormerRSA() key.Pair {
	former := k.now.Load().former
	if former.Thumbprint() == k.RSA.Thumbprint() { // this process began before the rotation
		return key.Pair{}
	}
	return former
}

// Ever are the public halves of all Ed25519 keys that the node has had, without bounds: what they signed stays the node's.
func (k *Keyring) Ever() []key.Public { return k.now.Load().all }

// Bind binds the operations of the operator on the node's keys.
func (k *Keyring) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ListNodeKeys, k.list)
	hall.Bind(t, protocol.RotateNodeKey, k.rotate)
}

func (k *Keyring) list(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ protocol.None) (out protocol.NodeKeys, err error) {
	turns, err := k.readTurns(ctx, tx)
	for _, t := range turns {
		public, err := key.ParsePublic(t.JWK)
		if pair, private := t.pair(); private == nil {
			public, err = pair.Published(), nil
		}
		if err != nil {
			return out, err
		}
		n := protocol.NodeKey{KeyID: public.Thumbprint, Signs: public.Thumbprint == k.Ed.Thumbprint(), Ended: t.ended(tx.Now)}
		if !t.From.IsZero() {
			n.From = &t.From
		}
		if !t.Until.IsZero() {
			n.Until = &t.Until
		}
		out.Items = append(out.Items, n)
	}
	return out, err
}

// rotate makes the next key, and gives the current one its end.
func (k *Keyring) rotate(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NodeKeyRotation) (out protocol.NodeKeys, err error) {
	turns, err := k.readTurns(ctx, tx)
	if err != nil {
		return out, err
	}
	last, leaked := &turns[len(turns)-1], in == protocol.NodeKeyRotation{}
	if last.From.After(tx.Now) && !leaked {
		return out, protocol.Errorf(protocol.Conflict, "the next key begins at %s; rotate again after that", last.From.UTC().Format(time.RFC3339))
	}
	next, err := key.GenerateEd25519()
	if err != nil {
		return out, err
	}
	raw, err := next.MarshalPrivate()
	if err != nil {
		return out, err
	}
	from := tx.Now.Add(time.Duration(in.InHours) * time.Hour)
	last.Until = from.AddDate(0, 0, in.OverlapDays)
	for i := range turns {
		if leaked && !turns[i].ended(tx.Now) { // those of earlier rotations too, and one that waits
			turns[i].Until = tx.Now
		}
	}
	turns = append(turns, turn{JWK: raw, From: from})
	for i, t := range turns {
		if pair, err := t.pair(); err == nil && t.ended(tx.Now) { // its private half is not needed again
			if turns[i].JWK, err = key.MarshalPublic(pair.Published()); err != nil {
				return out, err
			}
		}
	}
	turns = turns[max(0, len(turns)-maxTurns):]
	if err := k.putJSON(ctx, tx, secretTurns, turns); err != nil {
		return out, err
	}
	if err := k.keepRSA(ctx, tx, from.AddDate(0, 0, in.OverlapDays), leaked); err != nil {
		return out, err
	}
	for name, generate := range map[string]func() (key.Pair, error){secretRSA: k.newRSA, secretP256: key.GenerateP256} {
		if err := k.replace(ctx, tx, name, generate); err != nil {
			return out, err
		}
	}
	if err := tx.Audit(ctx, c.Actor(), "node-keys rotate", next.Thumbprint(), "from "+from.UTC().Format(time.RFC3339)); err != nil {
		return out, err
	}
	return k.list(ctx, tx, c, protocol.None{})
}

// keepRSA keeps the RSA key as the former one until a time, and none after a leak.
func (k *Keyring) keepRSA(ctx context.Context, tx *storage.Tx, until time.Time, leaked bool) error {
	if leaked {
		return k.putJSON(ctx, tx, secretFormer, turn{})
	}
	former := turn{Until: until}
	if err := k.readJSON(ctx, tx, secretRSA, &former.JWK); err != nil {
		return err
	}
	return k.putJSON(ctx, tx, secretFormer, former)
}

// replace makes another key in the place of one, for processes that start from now on.
func (k *Keyring) replace(ctx context.Context, tx *storage.Tx, name string, generate func() (key.Pair, error)) error {
	pair, err := generate()
	if err != nil {
		return err
	}
	raw, err := pair.MarshalPrivate()
	if err != nil {
		return err
	}
	return tx.Settings().PutSecret(ctx, name, k.sealer.Seal(storage.PurposeSecret(name), raw))
}
