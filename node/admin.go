package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"

	"stoa/identity"
	"stoa/identity/strictjson"
	"stoa/node/account"
	"stoa/node/archive"
	"stoa/node/board"
	"stoa/node/credential"
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

	keys      *credential.Keyring
	schemas   *dispatch.Schemas
	board     *board.Board
	directory *directory.Directory
	operators *dispatch.Table
	accounts  *account.Accounts
	config    Config
	archive   *archive.Archive // made when it is first needed
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
	return newAdmin(db, keys, base, c), nil
}

func newAdmin(db *storage.DB, keys *credential.Keyring, base string, c Config) *Admin {
	b, accounts := &board.Board{Base: base}, &account.Accounts{Base: base}
	return &Admin{
		DB: db, Base: base, keys: keys, schemas: dispatch.NewSchemas(), board: b,
		directory: directory.New(base), operators: operators(db, newModeration(keys, b, c), accounts),
		accounts: accounts, config: c,
	}
}

// operators is a hall with the operator's operations alone.
func operators(db *storage.DB, m *moderation.Moderation, accounts *account.Accounts) *dispatch.Table {
	t := dispatch.New(db, &identity.Gate{}, dispatch.NewLimits(dispatch.WideRates()))
	bindOperators(t, m, accounts)
	return t
}

func newModeration(keys *credential.Keyring, b *board.Board, c Config) *moderation.Moderation {
	m := &moderation.Moderation{Base: b.Base, Defaults: c.limits(), Network: keys.Networks.Of, Delete: b.Delete, Distribute: b.Distribute}
	return m.CountNumbers()
}

// Operate does one of the operator's operations, as a door of the node would:
// checked, in one transaction, noted in the audit log. in is its input.
func (a *Admin) Operate(ctx context.Context, op *protocol.Operation, in, out any) error {
	args, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := a.operators.Invoke(ctx, dispatch.Request{Op: op.Name, Args: args, Door: "operator", Evidence: identity.Evidence{Operator: true}})
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(res.JSON, out)
}

// Admin is the operator's hand on a node that runs in this process.
func (n *Node) Admin() *Admin { return newAdmin(n.db, n.keys, n.Base, n.config) }

// Close closes the database of an Admin that OpenAdmin made.
func (a *Admin) Close() error { return a.DB.Close() }

func (a *Admin) write(ctx context.Context, fn func(context.Context, *storage.Tx) error) error {
	return a.DB.Write(ctx, fn)
}

var draftType = reflect.TypeFor[protocol.ProfileDraft]()

// filled are members of a profile that the node fills in. A profile as it was
// read may be edited and put back, so they are passed over.
var filled = []string{"$schema", "interfaces", "reputation", "updatedAt", "untrusted_content", "alive", "lastSeenAt"}

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
		protocol.Fold(&draft)
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
		switch old, err := tx.ProfileToChange(ctx, draft.Handle); {
		case err == nil:
			stored.ERC8004, stored.KeyHash, stored.IdentityNote, stored.CreatedAt = old.ERC8004, old.KeyHash, old.IdentityNote, old.CreatedAt
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		if erc8004 != "" && erc8004 != stored.ERC8004 {
			return protocol.Invalid(protocol.Fault{Pointer: "/identity/erc8004", Code: "not-enrolled",
				Detail: "an identity is set with its proof: stoa admin identity put <handle> <identity> <thumbprint>"})
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
