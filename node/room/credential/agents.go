// Package credential answers which callers may speak for which profiles of this
// node: registered keys, API tokens and sessions, identities on a chain, and the
// node's own secrets.
package credential

import (
	"context"
	"errors"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/cache"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/room/directory"
	"stoa/protocol"
	"stoa/storage"
	"stoa/wellknown"
)

// An Agents answers for the profiles of this node: to the gate (who may sign as
// whom) and to the well-known documents.
type Agents struct {
	db         *storage.DB
	directory  *directory.Directory
	base       string
	chain      *Chain      // nil when no chain is configured
	enrolments *Enrolments // the same

	keys   current[identity.Hosted] // by thumbprint
	chains current[enrolled]        // by chain identity and thumbprint

	directories current[identity.Hosted] // by address of the key directory

	delegated current[delegation] // by chain identity and thumbprint

	tokens, sessions current[identity.Credential] // by hash of the secret

	used *cache.Cache[struct{}] // keys whose use was stored lately

	Counts storage.Memo[wellknown.Usage] // what Usage returns
}

const usageTTL = 5 * time.Minute

// NewAgents answers from db, and from the chain; chain and enrolments are nil when none is configured.
func NewAgents(db *storage.DB, d *directory.Directory, chain *Chain, enrolments *Enrolments) *Agents {
	a := &Agents{
		db: db, directory: d, base: d.Base, chain: chain, enrolments: enrolments,
		keys: newCurrent[identity.Hosted](db, storage.GroupKeys), chains: newCurrent[enrolled](db, storage.GroupKeys),
		directories: newCurrent[identity.Hosted](db, storage.GroupKeys), delegated: newCurrent[delegation](db, storage.GroupKeys),
		tokens: newCurrent[identity.Credential](db, storage.GroupAccounts), sessions: newCurrent[identity.Credential](db, storage.GroupAccounts),
	}
	a.used = cache.Of[struct{}](memoMax)
	a.Counts.Age, a.Counts.Count = usageTTL, countUsage
	return a
}

// KeyByThumbprint implements identity.Directory.
func (a *Agents) KeyByThumbprint(ctx context.Context, thumbprint string) (identity.Hosted, bool, error) {
	return a.keys.get(ctx, thumbprint, func() (h identity.Hosted, until time.Time, ok bool, err error) {
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			stored, err := tx.Keys().ByThumbprint(ctx, thumbprint)
			if err != nil {
				return err
			}
			if stored.RetiredAt != nil || stored.OnChain {
				// The key of a chain identity has its authority from the chain: the
				// request must name the identity, so that the chain is asked.
				return storage.ErrNotFound
			}
			public, err := key.ParsePublic(stored.PublicJWK)
			if err != nil {
				return err
			}
			p, err := tx.Profiles().Own(ctx, stored.Handle)
			if err != nil {
				return err
			}
			h = hosted(p)
			h.ERC8004 = "" // for which the chain would have to be asked
			h.Key, err = httpsig.NewKey(public.Key)
			return err
		})
		return h, until, ok, err
	})
}

// DirectoryAgent implements identity.Directory.
func (a *Agents) DirectoryAgent(ctx context.Context, address string) (identity.Hosted, bool, error) {
	return a.directories.get(ctx, address, func() (h identity.Hosted, until time.Time, ok bool, err error) {
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			joined, err := tx.Joins().OfDirectory(ctx, address)
			if err != nil {
				return err
			}
			p, err := tx.Profiles().Own(ctx, joined.Handle)
			if err == nil {
				h = hosted(p)
				h.ERC8004 = "" // for which the chain would have to be asked
			}
			return err
		})
		return h, until, ok, err
	})
}

// A delegation is a delegated key and the account that delegated to it.
type delegation struct {
	key httpsig.Key
	by  httpsig.Account
}

// DelegatedKey implements identity.Directory.
func (a *Agents) DelegatedKey(ctx context.Context, erc8004, thumbprint string) (httpsig.Key, httpsig.Account, bool, error) {
	d, ok, err := a.delegated.get(ctx, erc8004+" "+thumbprint, func() (d delegation, until time.Time, ok bool, err error) {
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			stored, err := tx.DelegatedKeys().Find(ctx, erc8004, thumbprint)
			if err != nil {
				return err
			}
			if until = stored.EndsAt; !tx.Now.Before(until) {
				return storage.ErrNotFound
			}
			public, err := key.ParsePublic([]byte(stored.PublicJWK))
			if err != nil {
				return err
			}
			d.by, _ = httpsig.ParseAccount(stored.Account)
			d.key, err = httpsig.NewKey(public.Key)
			return err
		})
		return d, until, ok, err
	})
	return d.key, d.by, ok, err
}

// An enrolled is a profile found by a key of its chain identity.
type enrolled struct {
	identity.Hosted
	storage.Enrolment
}

// HostedAgent implements identity.Directory. A key that is not the profile's is
// unknown here, and so is the right key after the identity's owner or wallet
// changed.
func (a *Agents) HostedAgent(ctx context.Context, k identity.ChainKey, thumbprint string) (identity.Hosted, bool, error) {
	found, ok, err := a.chains.get(ctx, k.Identity+" "+thumbprint, func() (f enrolled, until time.Time, ok bool, err error) {
		ok, err = a.read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if f.Enrolment, err = tx.Enrolments().ByIdentity(ctx, k.Identity); err != nil {
				return err
			}
			if f.KeyID != thumbprint {
				registered, err := tx.Keys().ByThumbprint(ctx, thumbprint)
				if err != nil {
					return err
				}
				if registered.Handle != f.Enrolment.Handle || registered.RetiredAt != nil || registered.Identity != k.Identity {
					return storage.ErrNotFound
				}
			}
			p, err := tx.Profiles().Own(ctx, f.Enrolment.Handle)
			if err == nil {
				f.Hosted = hosted(p)
				f.Hosted.Owner = f.Enrolment.Owner
			}
			return err
		})
		return f, until, ok, err
	})
	if !ok || err != nil {
		return identity.Hosted{}, false, err
	}
	if found.Enrolment.Owner == "" && found.KeyID == thumbprint { // enrolled before owners were kept; the next look ends it or names them
		return found.Hosted, true, nil
	}
	if !found.SameControl(k.Owner, k.Wallet) {
		a.enrolments.suspect(k.Identity)
		return identity.Hosted{}, false, nil
	}
	return found.Hosted, true, nil
}

// read runs fn in a transaction; ok is false after storage.ErrNotFound.
func (a *Agents) read(ctx context.Context, fn func(context.Context, *storage.Tx) error) (bool, error) {
	err := a.db.Read(ctx, fn)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Profile implements wellknown.Directory.
func (a *Agents) Profile(ctx context.Context, handle string) (p protocol.Profile, err error) {
	err = a.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err = a.directory.Get(ctx, tx, protocol.Caller{}, protocol.HandleInput{Handle: handle})
		return err
	})
	return p, err
}

// Key implements wellknown.Directory.
func (a *Agents) Key(ctx context.Context, thumbprint string) (wellknown.AgentKey, error) {
	var stored *storage.AgentKey
	ok, err := a.read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		stored, err = tx.Keys().ByThumbprint(ctx, thumbprint)
		return err
	})
	switch {
	case err != nil:
		return wellknown.AgentKey{}, err
	case !ok:
		return wellknown.AgentKey{}, protocol.Errorf(protocol.NotFound, "no agent of this node has that key")
	case stored.RetiredAt != nil:
		return wellknown.AgentKey{}, protocol.Errorf(protocol.Gone, "this key has no authority any more")
	}
	public, err := key.ParsePublic(stored.PublicJWK)
	return wellknown.AgentKey{Handle: stored.Handle, Public: public, Signed: stored.Directory}, err
}

// Usage implements wellknown.Directory. The result may be some minutes old.
func (a *Agents) Usage(ctx context.Context) (u wellknown.Usage, err error) {
	err = a.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		u, err = a.Counts.Get(ctx, tx)
		return err
	})
	return u, err
}

func countUsage(ctx context.Context, tx *storage.Tx, _ *wellknown.Usage) (u wellknown.Usage, err error) {
	if u.Agents, err = tx.Profiles().Count(ctx); err != nil {
		return u, err
	}
	c, err := tx.Site().Census(ctx)
	if err != nil {
		return u, err
	}
	u.Listed, u.Answering, u.Verified = c.Listed, c.Answering, c.Verified
	u.ActiveMonth, u.ActiveHalfyear, u.Replies = c.ActiveMonth, c.ActiveHalfyear, c.Replies
	u.Posts, err = tx.Posts().Count(ctx)
	return u, err
}

// Census is the same for the room that describes the node.
func (a *Agents) Census(ctx context.Context) (listed, answering, verified int, err error) {
	u, err := a.Usage(ctx)
	return u.Listed, u.Answering, u.Verified, err
}

const (
	memoTTL = time.Minute // how long a found answer is kept at most; a change ends it sooner
	memoMax = 1 << 15
)

// Elsewhere implements wellknown.Directory: hosted identities whose agent URI on
// chain does not lead to this node. Identities that the chain cannot answer for now
// are omitted.
func (a *Agents) Elsewhere(ctx context.Context, limit int) ([]string, error) {
	if a.chain == nil {
		return nil, nil
	}
	var found []string
	query := protocol.AgentQuery{HasIdentity: new(true), Local: true, Paging: protocol.Paging{Limit: protocol.MaxLimit}}
	for len(found) < limit {
		var page storage.AgentPage
		err := a.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			page, err = tx.Profiles().List(ctx, query)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range page.Items {
			if uri, err := a.chain.agentURI(ctx, p.ERC8004); err == nil && !strings.HasPrefix(uri, a.base+"/") && len(found) < limit {
				found = append(found, p.ERC8004)
			}
		}
		if page.Next == nil {
			break
		}
		query.After = *page.Next
	}
	return found, nil
}
