package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/node/board"
	"stoa/node/directory"
	"stoa/node/dispatch"
	"stoa/node/moderation"
	"stoa/protocol"
	"stoa/storage"
)

// An Admin does the operator's work directly on a node's database, beside a
// running node or without one.
type Admin struct {
	DB   *storage.DB
	Base string

	keys       *keyring
	schemas    *dispatch.Schemas
	board      *board.Board
	directory  *directory.Directory
	moderation *moderation.Moderation
}

// OpenAdmin opens the database that the configuration names. The node's public
// address is the one it was started with.
func OpenAdmin(ctx context.Context, c Config, log *slog.Logger) (*Admin, error) {
	db, keys, err := openStore(ctx, c, log)
	if err != nil {
		return nil, err
	}
	base, err := storedBase(ctx, db)
	if err == nil && base == "" {
		base = c.base(c.Listen)
		err = claimBase(ctx, db, base)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newAdmin(db, keys, base), nil
}

func newAdmin(db *storage.DB, keys *keyring, base string) *Admin {
	b := &board.Board{Base: base}
	return &Admin{
		DB: db, Base: base, keys: keys, schemas: dispatch.NewSchemas(), board: b,
		directory: &directory.Directory{Base: base}, moderation: &moderation.Moderation{BoardID: b.ID()},
	}
}

// Admin is the operator's hand on a node that runs in this process.
func (n *Node) Admin() *Admin { return newAdmin(n.db, n.keys, n.Base) }

// Close closes the database of an Admin that OpenAdmin made.
func (a *Admin) Close() error { return a.DB.Close() }

func (a *Admin) write(ctx context.Context, fn func(context.Context, *storage.Tx) error) error {
	return a.DB.Write(ctx, fn)
}

var draftType = reflect.TypeFor[protocol.ProfileDraft]()

// filled are members of a profile that the node fills in. A profile as it was
// read may be edited and put back, so they are passed over.
var filled = []string{"$schema", "interfaces", "reputation", "updatedAt", "untrusted_content"}

// ParseProfile reads a profile as an owner writes it, and its chain identity.
// The error is a validation error with every fault.
func (a *Admin) ParseProfile(raw []byte) (protocol.ProfileDraft, string, error) {
	var draft protocol.ProfileDraft
	if err := strictjson.Check(raw, strictjson.Limits{MaxBytes: 256 << 10, MaxDepth: 16, MaxTokens: 20_000}); err != nil {
		return draft, "", protocol.Errorf(protocol.InvalidRequest, "the profile is not acceptable JSON: %w", err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return draft, "", protocol.Errorf(protocol.InvalidRequest, "the profile must be a JSON object")
	}
	for _, name := range filled {
		delete(members, name)
	}
	erc8004, fault := takeIdentity(members)
	if policy, ok := members["contactPolicy"].(map[string]any); ok {
		delete(policy, "anonymousRequires")
	}
	faults := a.schemas.Check(a.schemas.Of(draftType), members)
	if fault != nil {
		faults = append(faults, *fault)
	}
	if len(faults) == 0 {
		plain, err := json.Marshal(members)
		if err != nil {
			return draft, "", err
		}
		if err := json.NewDecoder(bytes.NewReader(plain)).Decode(&draft); err != nil {
			return draft, "", err
		}
		faults = draft.Check()
	}
	if len(faults) > 0 {
		return draft, "", protocol.Invalid(faults...)
	}
	return draft, erc8004, nil
}

// PutProfile creates or replaces a profile. An identity it names must be one
// that the chain gave to a key registered with the profile; see PutIdentity.
func (a *Admin) PutProfile(ctx context.Context, raw []byte) (protocol.Profile, bool, error) {
	draft, erc8004, err := a.ParseProfile(raw)
	if err != nil {
		return protocol.Profile{}, false, err
	}
	var stored *storage.StoredProfile
	var created bool
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stored = &storage.StoredProfile{Draft: draft, CreatedAt: tx.Now}
		switch old, err := tx.ProfileByHandle(ctx, draft.Handle); {
		case err == nil:
			stored.ERC8004, stored.KeyHash, stored.IdentityNote, stored.CreatedAt = old.ERC8004, old.KeyHash, old.IdentityNote, old.CreatedAt
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		if erc8004 != "" && erc8004 != stored.ERC8004 {
			return protocol.Invalid(protocol.Fault{Pointer: "/identity/erc8004", Code: "not-enrolled",
				Detail: "an identity is set with its proof: stoa admin identity put <handle> <identity> --key-hash <thumbprint>"})
		}
		created, err = a.directory.Put(ctx, tx, stored)
		if err == nil {
			err = tx.Audit(ctx, "operator", "profile put", draft.Handle, "")
		}
		return err
	})
	if err != nil {
		return protocol.Profile{}, false, err
	}
	return a.directory.Profile(stored), created, nil
}

// PutIdentity enrols a chain identity for a profile. keyHash is the thumbprint
// of the registered key that speaks for it. The caller has checked with the
// chain that it does.
func (a *Admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.ProfileByHandle(ctx, handle)
		if errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", handle)
		}
		if err != nil {
			return err
		}
		p.ERC8004, p.KeyHash = erc8004, keyHash
		if _, err := a.directory.Put(ctx, tx, p); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "identity put", handle, erc8004)
	})
}

// Profile reads one profile as the public sees it.
func (a *Admin) Profile(ctx context.Context, handle string) (p protocol.Profile, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err = a.directory.Get(ctx, tx, protocol.Caller{}, protocol.HandleInput{Handle: handle})
		return err
	})
	return p, err
}

// Profiles lists profiles, newest first.
func (a *Admin) Profiles(ctx context.Context, q protocol.AgentQuery) (page protocol.Page[protocol.Profile], err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		page, err = a.directory.Search(ctx, tx, protocol.Caller{}, q)
		return err
	})
	return page, err
}

// DeleteProfile takes a profile away; its posts stay.
func (a *Admin) DeleteProfile(ctx context.Context, handle string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := a.directory.Delete(ctx, tx, handle); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "profile delete", handle, "")
	})
}

// AddKey registers a key with a profile. With keep, the node seals and keeps
// the private half and signs for the agent; else only the public half is stored.
func (a *Admin) AddKey(ctx context.Context, handle string, pair key.Pair, keep bool) error {
	public, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return err
	}
	stored := storage.AgentKey{Handle: handle, Thumbprint: pair.Thumbprint(), PublicJWK: public}
	if keep {
		if stored.Sealed, err = a.keys.sealAgent(handle, pair); err != nil {
			return err
		}
	}
	return a.putKey(ctx, stored)
}

// AddPublicKey registers a key whose private half the owner keeps.
func (a *Admin) AddPublicKey(ctx context.Context, handle string, jwk []byte) (string, error) {
	public, err := key.ParsePublic(jwk)
	if err != nil {
		return "", protocol.Errorf(protocol.InvalidRequest, "not a public JWK of a kind this node takes: %w", err)
	}
	raw, err := key.MarshalPublic(public)
	if err != nil {
		return "", err
	}
	return public.Thumbprint, a.putKey(ctx, storage.AgentKey{Handle: handle, Thumbprint: public.Thumbprint, PublicJWK: raw})
}

func (a *Admin) putKey(ctx context.Context, k storage.AgentKey) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.ProfileByHandle(ctx, k.Handle); errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", k.Handle)
		} else if err != nil {
			return err
		}
		k.CreatedAt = tx.Now
		if err := tx.PutAgentKey(ctx, k); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "key add", k.Handle, k.Thumbprint)
	})
}

// CreateToken makes an API token that writes as a profile. The secret is
// returned once and stored as a hash.
func (a *Admin) CreateToken(ctx context.Context, handle, name string, ttl time.Duration) (secret string, t storage.Token, err error) {
	var raw [24]byte
	rand.Read(raw[:])
	secret = TokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.ProfileByHandle(ctx, handle); errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", handle)
		} else if err != nil {
			return err
		}
		t = storage.Token{
			ID: protocol.NewID(protocol.TokenID, tx.Now), Hash: sha256.Sum256([]byte(secret)),
			Account: protocol.NewID(protocol.AccountID, tx.Now), Handle: handle, Name: name, CreatedAt: tx.Now,
		}
		if ttl > 0 {
			expires := tx.Now.Add(ttl)
			t.ExpiresAt = &expires
		}
		if err := tx.InsertToken(ctx, t); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "token create", handle, t.ID)
	})
	return secret, t, err
}

// HidePost and RestorePost move a post off the public lists and back.
func (a *Admin) HidePost(ctx context.Context, id, why string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error { return a.moderation.Hide(ctx, tx, id, why) })
}

func (a *Admin) RestorePost(ctx context.Context, id, why string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error { return a.moderation.Restore(ctx, tx, id, why) })
}

// DeletePost takes a post away for good.
func (a *Admin) DeletePost(ctx context.Context, id, why string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := a.board.Delete(ctx, tx, protocol.Caller{Standing: protocol.Operator}, protocol.PostRef{ID: id}); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "post delete", id, why)
	})
}

// claimBase ties a database to the node's public address: ids that were given
// to the world begin with it, so a node that has spoken cannot move.
func claimBase(ctx context.Context, db *storage.DB, base string) error {
	return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stored, err := tx.Setting(ctx, "base")
		if err != nil || stored == base {
			return err
		}
		if stored != "" {
			posts, err := tx.CountPosts(ctx)
			if err != nil {
				return err
			}
			if posts > 0 {
				return fmt.Errorf("%w: this database belongs to the node %s, and posts under that address have gone out; start it with --base-url %s, or use another data directory", ErrConfig, stored, stored)
			}
		}
		return tx.PutSetting(ctx, "base", base)
	})
}

func storedBase(ctx context.Context, db *storage.DB) (base string, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		base, err = tx.Setting(ctx, "base")
		return err
	})
	return base, err
}

// takeIdentity lifts the chain identity out of a profile; its other members
// are the node's to fill in.
func takeIdentity(members map[string]any) (string, *protocol.Fault) {
	raw, ok := members["identity"]
	delete(members, "identity")
	if !ok || raw == nil {
		return "", nil
	}
	id, ok := raw.(map[string]any)
	if !ok {
		return "", &protocol.Fault{Pointer: "/identity", Code: "wrong-type", Detail: "must be of type object"}
	}
	switch s := id["erc8004"].(type) {
	case nil:
		return "", nil
	case string:
		return strings.ToLower(s), nil
	}
	return "", &protocol.Fault{Pointer: "/identity/erc8004", Code: "wrong-type", Detail: "must be of type string"}
}
