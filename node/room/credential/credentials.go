package credential

import (
	"context"
	"time"

	"stoa/identity"
	"stoa/identity/cache"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// touchEvery is the precision of the stored time at which a token or session was
// last used.
const touchEvery = 10 * time.Minute

// TokenBySecret implements identity.Directory.
func (a *Agents) TokenBySecret(ctx context.Context, secret string) (identity.Credential, bool, error) {
	hash, ok := session.Hash(session.Token, secret)
	if !ok {
		return identity.Credential{}, false, nil
	}
	return a.tokens.get(ctx, string(hash[:]), func() (c identity.Credential, until time.Time, ok bool, err error) {
		var stale bool
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			stored, err := tx.Tokens().ByHash(ctx, hash)
			if err != nil {
				return err
			}
			for _, end := range []*time.Time{stored.ExpiresAt, stored.LapsesAt} {
				if end != nil && (until.IsZero() || end.Before(until)) {
					until = *end
				}
			}
			if stored.RevokedAt != nil || !until.IsZero() && !until.After(tx.Now) {
				return storage.ErrNotFound
			}
			stale = stored.LastUsedAt == nil || tx.Now.Sub(*stored.LastUsedAt) > touchEvery
			c, err = credential(ctx, tx, stored.ID, stored.Account, stored.Handle)
			c.Resource = stored.Resource
			c.Scopes = make([]protocol.Scope, len(stored.Scopes)) // never nil: nil would allow everything
			for i, s := range stored.Scopes {
				c.Scopes[i] = protocol.Scope(s)
			}
			return err
		})
		if ok && stale {
			a.touch(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Tokens().Touch(ctx, c.ID) })
		}
		return c, until, ok, err
	})
}

// SessionBySecret implements identity.Directory.
func (a *Agents) SessionBySecret(ctx context.Context, secret string) (identity.Credential, bool, error) {
	hash, ok := session.Hash(session.Cookie, secret)
	if !ok {
		return identity.Credential{}, false, nil
	}
	return a.sessions.get(ctx, string(hash[:]), func() (c identity.Credential, until time.Time, ok bool, err error) {
		var stale bool
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			stored, err := tx.Sessions().ByHash(ctx, hash)
			if err != nil {
				return err
			}
			if !stored.ExpiresAt.After(tx.Now) {
				return storage.ErrNotFound
			}
			until = stored.ExpiresAt
			stale = tx.Now.Sub(stored.LastUsedAt) > touchEvery
			c, err = credential(ctx, tx, stored.ID, stored.Account, "")
			return err
		})
		if ok && stale {
			a.touch(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Sessions().Touch(ctx, c.ID) })
		}
		return c, until, ok, err
	})
}

// KeyUsed implements identity.Directory.
func (a *Agents) KeyUsed(ctx context.Context, erc8004, thumbprint string) {
	name, now := erc8004+" "+thumbprint, time.Now()
	if _, lately := a.used.Get(name, now); lately {
		return
	}
	a.used.Put(name, struct{}{}, 0, now.Add(touchEvery))
	a.touch(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Keys().Touch(ctx, thumbprint); err != nil || erc8004 == "" {
			return err
		}
		return tx.DelegatedKeys().Touch(ctx, erc8004, thumbprint)
	})
}

// credential reads which profiles an account may act as: all of its profiles, or
// the named one, if it still belongs to the account.
func credential(ctx context.Context, tx *storage.Tx, id, account, handle string) (identity.Credential, error) {
	c := identity.Credential{ID: id, Account: account}
	owner, err := tx.Accounts().ByID(ctx, account)
	if err != nil {
		return c, err
	}
	c.Operator = owner.Role == protocol.RoleOperator
	handles, err := tx.Accounts().Handles(ctx, account)
	if err != nil {
		return c, err
	}
	for _, h := range handles {
		if handle != "" && h != handle {
			continue
		}
		p, err := tx.Profiles().Own(ctx, h)
		if err != nil {
			return c, err
		}
		own := hosted(p)
		if p.ERC8004 != "" {
			e, err := tx.Enrolments().ByIdentity(ctx, p.ERC8004)
			if err != nil {
				return c, err
			}
			own.Owner = e.Owner
		}
		c.Profiles = append(c.Profiles, own)
	}
	if handle != "" && len(c.Profiles) == 0 {
		return c, storage.ErrNotFound
	}
	return c, nil
}

// touch records a use. If that fails, the next use records it.
func (a *Agents) touch(ctx context.Context, fn func(context.Context, *storage.Tx) error) {
	_ = a.db.Write(ctx, fn)
}

// hosted is a profile as the gate needs it.
func hosted(p *storage.StoredProfile) identity.Hosted {
	h := identity.Hosted{Handle: p.Draft.Handle, Name: p.Draft.Name, ERC8004: p.ERC8004, State: p.State}
	if len(p.Draft.Languages) > 0 {
		h.Language = p.Draft.Languages[0]
	}
	return h
}

// current caches results while no table that they are made of changes, so that a
// revocation by this process applies from the next request on; one by another process
// within two seconds.
type current[T any] struct {
	*cache.Cache[held[T]]
	db    *storage.DB
	group int // of storage.DB.Generation
}

type held[T any] struct {
	value      T
	generation uint64
}

func newCurrent[T any](db *storage.DB, group int) current[T] {
	return current[T]{cache.Of[held[T]](memoMax), db, group}
}

// get returns the last result of find, or calls it. find returns until when its
// result is valid; the zero time means no limit.
func (m current[T]) get(ctx context.Context, name string, find func() (T, time.Time, bool, error)) (T, bool, error) {
	now := time.Now()
	before, valid := m.db.Generation(ctx, m.group)
	if e, ok := m.Get(name, now); ok && valid && e.generation == before {
		return e.value, true, nil
	}
	v, until, ok, err := find()
	if err != nil || !ok {
		return v, false, err
	}
	if soon := now.Add(memoTTL); until.IsZero() || until.After(soon) {
		until = soon
	}
	m.Put(name, held[T]{v, before}, 0, until)
	return v, true, nil
}
