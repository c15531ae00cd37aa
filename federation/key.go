package federation

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Position of a remote key in its owner's document, stored with the key.
const (
	underPublicKey = "publicKey"       // may sign requests
	underAssertion = "assertionMethod" // may sign requests and documents (FEP-521a)
)

const (
	// keyAge is how long a key is used without being fetched again.
	keyAge = 24 * time.Hour
	// keyMemory is how long a key is used from memory: another process may have
	// replaced it in the database. This process removes what it replaces.
	keyMemory = 5 * time.Second
)

var errKey = errors.New("the key is not one that this node takes")

// A remoteKey is a public key of an actor of another node.
type remoteKey struct {
	ID, Owner string // Owner is the actor's id; its document names this key
	Public    crypto.PublicKey
	Assertion bool // the key may sign documents
	Fetched   time.Time
	actor     *activity.Actor // its owner, if the key was fetched and is not stored
}

// keyOf finds a key by its id: from the database while it is young, otherwise
// fetched. fresh forces a fetch unless the stored key is younger than keyRetryAge.
// A fetched key is stored once it has verified something: see keepProven.
func (f *Federation) keyOf(ctx context.Context, id string, fresh bool) (*remoteKey, error) {
	known, ok := f.keys.Get(id, f.now())
	if !ok || fresh {
		var err error
		if known, err = f.knownKey(ctx, id); err != nil {
			return nil, err
		}
	}
	age := keyAge
	if fresh {
		age = keyRetryAge
	}
	if known != nil && f.now().Sub(known.Fetched) < age {
		return known, nil
	}
	name := "key " + id
	if found, ok := f.unproven.Get(name, f.now()); ok {
		return found, nil
	}
	found, err := f.fetchOnce(ctx, name, func(ctx context.Context) (any, error) {
		found, err := f.fetchKey(ctx, id)
		if err == nil {
			found.Fetched = f.now()
			f.unproven.Put(name, found, found.size(), found.Fetched.Add(keyRetryAge))
		}
		return found, err
	})
	if err != nil {
		return nil, err
	}
	return found.(*remoteKey), nil
}

// size is the approximate memory of a key with its actor, in bytes.
func (k *remoteKey) size() int {
	n := len(k.ID) + len(k.Owner) + 1<<10
	if k.actor == nil {
		return n
	}
	if doc, err := k.actor.Kept(); err == nil {
		n += len(doc)
	}
	return n
}

// keepProven stores a fetched key and its actor once the key has verified
// something: what an unverified request causes to be fetched is never stored.
func (f *Federation) keepProven(ctx context.Context, k *remoteKey) error {
	if k.actor == nil {
		return nil // from the database
	}
	if err := f.keepKey(ctx, k); err != nil {
		return err
	}
	f.unproven.Drop("key " + k.ID)
	return nil
}

// knownKey reads a key from the database, nil if it is not there.
func (f *Federation) knownKey(ctx context.Context, id string) (*remoteKey, error) {
	var row *storage.RemoteKey
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		row, err = tx.Peers().KeyByID(ctx, id)
		return absent(err)
	})
	if err != nil || row == nil {
		return nil, err
	}
	pub, err := x509.ParsePKIXPublicKey(row.Key)
	if err != nil {
		return nil, nil // written by another version: fetch it again
	}
	found := &remoteKey{ID: id, Owner: row.Owner, Public: pub, Assertion: row.Algorithm == underAssertion, Fetched: row.FetchedAt}
	f.keys.Put(id, found, found.size(), f.now().Add(keyMemory))
	return found, nil
}

func (f *Federation) keepKey(ctx context.Context, k *remoteKey) error {
	spki, err := x509.MarshalPKIXPublicKey(k.Public)
	if err != nil {
		return fmt.Errorf("keep key %s: %w", k.ID, err)
	}
	where := underPublicKey
	if k.Assertion {
		where = underAssertion
	}
	defer f.keys.Drop(k.ID)
	return f.c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *storage.Tx) error {
		if err := f.keepActor(ctx, tx, k.actor); err != nil {
			return err
		}
		if err := f.grow(ctx, tx, storage.StockKeys); err != nil {
			return err
		}
		return tx.Peers().PutKey(ctx, storage.RemoteKey{
			KeyID: k.ID, Owner: k.Owner, Host: hostOf(k.Owner), Algorithm: where, Key: spki, FetchedAt: tx.Now,
		})
	})
}

// fetchKey fetches the document that a key id names. If that is the actor itself
// (with a fragment), the document is sufficient; if it is a separate document
// (GoToSocial), the owner's document must name the key as well: anyone can publish
// a document that claims to be another actor's key.
func (f *Federation) fetchKey(ctx context.Context, id string) (*remoteKey, error) {
	address := withoutFragment(id)
	raw, err := f.fetch(ctx, address, "")
	if err != nil {
		return nil, err
	}
	var doc activity.Actor
	if err := strictjson.DecodeLoose(raw, &doc); err != nil {
		return nil, err
	}
	if string(doc.ID) == address && doc.Type.Is(activity.ActorTypes...) {
		a, err := f.readActor(address, raw)
		if err != nil {
			return nil, err
		}
		return keyIn(a, id)
	}
	owner := doc.Owner.One()
	if k, ok := doc.PublicKey.Find(id); ok {
		owner = k.Owner.One()
	} else if string(doc.ID) != id {
		return nil, fmt.Errorf("%w: the document of %s is another one", errKey, id)
	}
	if !f.sameOrigin(owner, id) {
		return nil, fmt.Errorf("%w: %s is owned elsewhere", errKey, id)
	}
	a, err := f.lookUpActor(ctx, owner)
	if err != nil {
		return nil, err
	}
	return keyIn(a, id)
}

// keyIn finds a key by its id in the document of its owner.
func keyIn(a *activity.Actor, id string) (*remoteKey, error) {
	found := &remoteKey{ID: id, Owner: string(a.ID), actor: a}
	k, ok := a.AssertionMethod.Find(id)
	if ok {
		found.Assertion = true
	} else if k, ok = a.PublicKey.Find(id); !ok {
		return nil, fmt.Errorf("%w: %s does not name %s", errKey, a.ID, id)
	}
	holder := k.Owner.One()
	if found.Assertion {
		holder = k.Controller.One()
	}
	if holder != string(a.ID) {
		return nil, fmt.Errorf("%w: %s has another owner", errKey, id)
	}
	var err error
	if k.Multibase != "" {
		found.Public, err = key.ParseMultikey(string(k.Multibase))
	} else {
		found.Public, err = key.ParsePublicPEM(string(k.PEM))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errKey, id, err)
	}
	_, err = a.Kept() // an actor that is too large to be stored
	return found, err
}

// verifyProof checks a document's integrity proof by owner.
func (f *Federation) verifyProof(ctx context.Context, raw []byte, owner string) error {
	doc, err := integrity.Read(raw)
	if err != nil {
		return err
	}
	p := doc.Proof
	if p.Controller() != owner {
		return fmt.Errorf("%w: made by %s", integrity.ErrProof, p.Controller())
	}
	return f.withKey(ctx, p.VerificationMethod, owner, doc.Verify)
}

// withKey verifies something with a key by which owner signs documents. It fetches the key if it is not known, and once more if the known
// key fails.
func (f *Federation) withKey(ctx context.Context, id, owner string, verify func(ed25519.PublicKey) error) error {
	for _, fresh := range []bool{false, true} {
		k, err := f.keyOf(ctx, id, fresh)
		if err != nil {
			return err
		}
		pub, ok := k.Public.(ed25519.PublicKey)
		if !ok || !k.Assertion || k.Owner != owner {
			return fmt.Errorf("%w: the key may not sign documents of %s", integrity.ErrProof, owner)
		}
		if err = verify(pub); err == nil {
			return f.keepProven(ctx, k)
		}
		if fresh {
			return f.byAnother(ctx, k, verify, err)
		}
	}
	return nil
}

// byAnother verifies with the other keys that the owner's document names now: the owner may have rotated its key, and what it signed
// before may still arrive. It returns failed when none of them verifies.
func (f *Federation) byAnother(ctx context.Context, k *remoteKey, verify func(ed25519.PublicKey) error, failed error) error {
	a, err := f.lookUpActor(ctx, k.Owner)
	if err != nil {
		return failed
	}
	for i, other := range a.AssertionMethod {
		if i == maxAssertion {
			break
		}
		found, err := keyIn(a, string(other.ID))
		if err != nil {
			continue
		}
		if pub, ok := found.Public.(ed25519.PublicKey); ok && !pub.Equal(k.Public) && verify(pub) == nil {
			return nil
		}
	}
	return failed
}

// maxAssertion is how many keys of an actor are tried.
const maxAssertion = 8

// httpKey converts a remote key for the signature verifier: Ed25519, or RSA with
// PKCS #1 v1.5 padding, the only one that the fediverse uses.
func httpKey(k *remoteKey) (httpsig.Key, error) {
	if _, ok := k.Public.(ed25519.PublicKey); ok {
		return httpsig.NewKey(k.Public)
	}
	return httpsig.NewKeyFor(k.Public, httpsig.RSAv15SHA256)
}
