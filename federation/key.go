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

// Where a remote key stands in its owner's document, as kept with the key.
const (
	underPublicKey = "publicKey"       // may sign requests
	underAssertion = "assertionMethod" // may sign requests and documents (FEP-521a)
)

// keyAge is how long a key is used without being fetched again.
const keyAge = 24 * time.Hour

var errKey = errors.New("the key is not one that this node takes")

// A remoteKey is a public key of an actor of another node.
type remoteKey struct {
	ID, Owner string // Owner is the actor's id; it names this key in turn
	Public    crypto.PublicKey
	Assertion bool // may sign documents
	Fetched   time.Time
}

// keyOf finds a key by its id: from the database while young, else fetched.
// fresh forces a fetch unless the known key is younger than keyRetryAge.
func (f *Federation) keyOf(ctx context.Context, id string, fresh bool) (*remoteKey, error) {
	known, err := f.knownKey(ctx, id)
	if err != nil {
		return nil, err
	}
	age := keyAge
	if fresh {
		age = keyRetryAge
	}
	if known != nil && f.now().Sub(known.Fetched) < age {
		return known, nil
	}
	v, err, _ := f.fetching.Do("key "+id, func() (any, error) {
		if err := f.missed("key " + id); err != nil {
			return nil, err
		}
		found, err := f.fetchKey(context.WithoutCancel(ctx), id)
		if err != nil {
			return nil, f.miss("key "+id, err)
		}
		return found, f.keepKey(ctx, found)
	})
	if err != nil {
		return nil, err
	}
	return v.(*remoteKey), nil
}

func (f *Federation) knownKey(ctx context.Context, id string) (*remoteKey, error) {
	var row *storage.RemoteKey
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		row, err = tx.RemoteKeyByID(ctx, id)
		return absent(err)
	})
	if err != nil || row == nil {
		return nil, err
	}
	pub, err := x509.ParsePKIXPublicKey(row.Key)
	if err != nil {
		return nil, nil // written by another version: fetch it again
	}
	return &remoteKey{ID: id, Owner: row.Owner, Public: pub, Assertion: row.Algorithm == underAssertion, Fetched: row.FetchedAt}, nil
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
	return f.c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *storage.Tx) error {
		k.Fetched = tx.Now
		return tx.PutRemoteKey(ctx, storage.RemoteKey{KeyID: k.ID, Owner: k.Owner, Algorithm: where, Key: spki, FetchedAt: tx.Now})
	})
}

// fetchKey fetches the document that a key id names. Where that is the actor
// itself (a fragment of it), it decides alone; where it is a document of its
// own (GoToSocial), the owner must name the key in turn: anybody can write a
// document that claims to be somebody's key.
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
		if err := f.keepActor(ctx, a, raw); err != nil {
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
	a, err := f.fetchActor(ctx, owner)
	if err != nil {
		return nil, err
	}
	return keyIn(a, id)
}

// keyIn finds a key in the document of its owner.
func keyIn(a *activity.Actor, id string) (*remoteKey, error) {
	found := &remoteKey{ID: id, Owner: string(a.ID)}
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
	return found, nil
}

// verifyProof checks a document's integrity proof by owner. It fetches the
// owner's key where it is not known, and once more where the known key fails.
func (f *Federation) verifyProof(ctx context.Context, raw []byte, owner string) error {
	p, err := integrity.Read(raw)
	if err != nil {
		return err
	}
	if p.Controller() != owner {
		return fmt.Errorf("%w: made by %s", integrity.ErrProof, p.Controller())
	}
	for _, fresh := range []bool{false, true} {
		k, err := f.keyOf(ctx, p.VerificationMethod, fresh)
		if err != nil {
			return err
		}
		pub, ok := k.Public.(ed25519.PublicKey)
		if !ok || !k.Assertion || k.Owner != owner {
			return fmt.Errorf("%w: the key may not sign documents of %s", integrity.ErrProof, owner)
		}
		if _, err = integrity.Verify(raw, pub); err == nil {
			return nil
		}
		if fresh {
			return err
		}
	}
	return nil
}

// httpKey makes the verifier's key of a remote key: Ed25519, or RSA with the
// one padding that the fediverse uses.
func httpKey(k *remoteKey) (httpsig.Key, error) {
	if _, ok := k.Public.(ed25519.PublicKey); ok {
		return httpsig.NewKey(k.Public)
	}
	return httpsig.NewKeyFor(k.Public, httpsig.RSAv15SHA256)
}
