package credential

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// Names of the secrets of a deployment. All are stored sealed in the database.
const (
	secretEd25519      = "node-ed25519"  // signs requests, activities and the node's key directory
	secretRSA          = "node-rsa"      // signs for the older fediverse
	secretP256         = "node-p256"     // signs agent cards in addition to Ed25519, for readers that only know ES256
	SecretPow          = "pow"           // master of the proof-of-work secrets
	SecretMeetingLinks = "meeting-links" // makes the tickets of links in mails about meetings, and the names of mailboxes
	SecretBidLinks     = "bid-links"     // makes the tickets of links in mails to owners of attention boards
	SecretMailReturn   = "mail-return"   // makes the addresses that bounces of mails, and answers to them, come to
	SecretSignIn       = "sign-in"       // makes the challenges that passkeys and Ethereum accounts sign
	SecretOAuth        = "oauth"         // seals codes, refresh tokens and ids of clients that registered
	SecretPush         = "push"          // makes the key for push services
	SecretDoctor       = "doctor"        // marks the requests by which a node is examined
	SecretReceipts     = "receipts"      // seals kept answers to idempotency keys
	secretNetworks     = "networks"      // keys the hashes of client networks
)

const rsaBits = 2048

// Keyring opens the node's own secrets and the hosted agents' keys. Secrets are
// sealed with the master key; the purpose is part of the seal, so that one cannot
// be used as another.
type Keyring struct {
	db            *storage.DB
	sealer        *key.Sealer
	Ed, RSA, P256 key.Pair // Ed is the one that this process signs with, see Refresh
	Networks      *identity.Networks

	newRSA func() (key.Pair, error)
	first  key.Pair // the first Ed25519 key
	now    atomic.Pointer[published]
}

// MasterKey reads the master key, or makes it for a new database. A database that
// holds secrets was sealed with an existing key: a new one could open none of them,
// and its file would be in the place of the right one.
func MasterKey(ctx context.Context, db *storage.DB, file string) (*key.Sealer, error) {
	sealed := true
	err := db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Settings().Secret(ctx, secretEd25519, nil) // a read makes none
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		sealed, err = false, nil
	}
	if err != nil {
		return nil, err
	}
	if !sealed {
		return key.LoadOrCreateMaster(file)
	}
	sealer, err := key.LoadMaster(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, MissingMaster(file)
	}
	return sealer, err
}

// ErrNoMaster is wrapped by the error for a missing master key when the database
// has secrets that are sealed with it.
var ErrNoMaster = errors.New("there is no master key")

// MissingMaster is the error of a master key that is not in file (ErrNoMaster).
func MissingMaster(file string) error {
	return fmt.Errorf("%w %s, and the secrets in the database are sealed with one. No new key was made. "+
		"Put the file back from where you keep it, with mode 0600, or name it with --master-key. "+
		"If it is lost, so are the node's keys: begin again with another data directory and base-url", ErrNoMaster, file)
}

// FirstSecret names the secret that the node's first key is stored under, and Fits reports whether a master key sealed it.
const FirstSecret = secretEd25519

func Fits(s *key.Sealer, sealed []byte) bool {
	_, err := s.Open("secret "+FirstSecret, sealed)
	return err == nil
}

// OpenKeyring reads the node's keys, making them at the first start: the RSA key
// with newRSA, or if that is nil with GenerateRSA.
func OpenKeyring(ctx context.Context, db *storage.DB, sealer *key.Sealer, newRSA func() (key.Pair, error)) (*Keyring, error) {
	if newRSA == nil {
		newRSA = GenerateRSA
	}
	k := &Keyring{db: db, sealer: sealer, newRSA: newRSA}
	var err error
	if k.first, err = k.pair(ctx, secretEd25519, key.GenerateEd25519); err != nil {
		return nil, err
	}
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	if k.Ed, err = k.current(); err != nil {
		return nil, err
	}
	if k.P256, err = k.pair(ctx, secretP256, key.GenerateP256); err != nil {
		return nil, err
	}
	if k.RSA, err = k.pair(ctx, secretRSA, newRSA); err != nil {
		return nil, err
	}
	networks, err := k.Random(ctx, secretNetworks)
	k.Networks = identity.NewNetworks(networks)
	return k, err
}

// GenerateRSA makes a key of the size that the fediverse expects.
func GenerateRSA() (key.Pair, error) { return key.GenerateRSA(rsaBits) }

func (k *Keyring) pair(ctx context.Context, name string, generate func() (key.Pair, error)) (key.Pair, error) {
	raw, err := k.secret(ctx, name, func() ([]byte, error) {
		p, err := generate()
		if err != nil {
			return nil, err
		}
		return p.MarshalPrivate()
	})
	if err != nil {
		return key.Pair{}, err
	}
	return key.ParsePair(raw)
}

// Random reads a secret of 32 random bytes.
func (k *Keyring) Random(ctx context.Context, name string) ([]byte, error) {
	return k.secret(ctx, name, func() ([]byte, error) {
		raw := make([]byte, 32)
		_, err := rand.Read(raw)
		return raw, err
	})
}

// secret reads a secret, making it once for all processes.
func (k *Keyring) secret(ctx context.Context, name string, generate func() ([]byte, error)) ([]byte, error) {
	var sealed []byte
	err := k.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		var err error
		sealed, err = tx.Settings().Secret(ctx, name, func() ([]byte, error) {
			plain, err := generate()
			if err != nil {
				return nil, err
			}
			return k.sealer.Seal(storage.PurposeSecret(name), plain), nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	plain, err := k.sealer.Open(storage.PurposeSecret(name), sealed)
	if err != nil {
		return nil, fmt.Errorf("open secret %s (is this the master key that sealed the database?): %w", name, err)
	}
	return plain, nil
}

// SealAgent seals a hosted agent's private key.
func (k *Keyring) SealAgent(handle string, p key.Pair) ([]byte, error) {
	raw, err := p.MarshalPrivate()
	if err != nil {
		return nil, err
	}
	return k.sealer.Seal(storage.PurposeAgentKey(handle, p.Thumbprint()), raw), nil
}

// Seal encrypts a secret that a room stores. purpose names the room, the secret and its owner.
func (k *Keyring) Seal(purpose string, secret []byte) []byte {
	return k.sealer.Seal(storage.PurposeRoom+purpose, secret)
}

// Open decrypts what Seal made for the same purpose.
func (k *Keyring) Open(purpose string, sealed []byte) ([]byte, error) {
	return k.sealer.Open(storage.PurposeRoom+purpose, sealed)
}

func (k *Keyring) OpenAgent(stored *storage.AgentKey) (key.Pair, error) {
	raw, err := k.sealer.Open(storage.PurposeAgentKey(stored.Handle, stored.Thumbprint), stored.Sealed)
	if err != nil {
		return key.Pair{}, fmt.Errorf("open key of @%s: %w", stored.Handle, err)
	}
	return key.ParsePair(raw)
}

// Agent implements wellknown.Keys.
func (k *Keyring) Agent(ctx context.Context, handle, thumbprint string) (key.Pair, error) {
	var stored *storage.AgentKey
	err := k.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		var err error
		stored, err = tx.Keys().ByThumbprint(ctx, thumbprint)
		return err
	})
	if err != nil || stored.Handle != handle || stored.Sealed == nil {
		return key.Pair{}, storage.Missing(err, protocol.Errorf(protocol.NotFound, "this node does not hold that key"))
	}
	return k.OpenAgent(stored)
}
