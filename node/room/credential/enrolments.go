package credential

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// Enrolments keeps the enrolments of profiles up to date with the chain. It checks
// an enrolment when the poller saw that its agent's authority changed, and all of a
// chain after a reorganisation, a gap in the events and at the start. The state is
// in the database, so several processes may find the same change: one of them
// writes it.
type Enrolments struct {
	db    *storage.DB
	chain *Chain
	log   *slog.Logger
	pause time.Duration // between two steps

	wake  chan struct{}
	mu    sync.Mutex           // guards all below
	due   map[string]time.Time // identities to look at, and when
	again map[string]time.Time // identities that changed, to look at once more when requests of before are over
	walk  map[string]string    // registries that are walked through, with the last identity
	begun map[string]string    // the same for what identities began, with the last name
	lost  map[uint64]time.Time // chains whose blocks are to be looked at, and when
	looks []erc8004.Changes    // whose transfers and new addresses of documents are to be stored
}

const (
	enrolmentPause = time.Second      // so a walk takes about ten reads a second
	enrolmentPage  = 10               // of a walk, in one step
	enrolmentRetry = 5 * time.Second  // after what could not be decided
	enrolmentKeep  = time.Minute      // how often chains with enrolments are kept awake
	enrolmentMost  = 10_000           // identities that wait; with more, the chain is walked
	blockBatch     = 50               // headers of one request
	lookTimeout    = 10 * time.Second // one enrolment
)

// NewEnrolments watches what c reads. The caller runs it.
func NewEnrolments(db *storage.DB, c *Chain, log *slog.Logger) *Enrolments {
	w := &Enrolments{db: db, chain: c, log: log, pause: enrolmentPause, wake: make(chan struct{}, 1),
		due: map[string]time.Time{}, walk: map[string]string{}, lost: map[uint64]time.Time{},
		again: map[string]time.Time{}, begun: map[string]string{}}
	if c.Dev {
		w.pause = 100 * time.Millisecond
	}
	c.tell = w.changed
	return w
}

// changed notes what the poller saw (erc8004.Config.Changed).
func (w *Enrolments) changed(seen erc8004.Changes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen.All || len(w.due)+len(seen.Agents) > enrolmentMost {
		w.lost[seen.Chain] = time.Time{}
		for _, registry := range w.chain.Reader.Registries()[seen.Chain] {
			w.walk[registry], w.begun[registry] = "", ""
		}
	}
	if (seen.All || len(seen.Transfers)+len(seen.URIs) > 0) && len(w.looks) < enrolmentMost {
		w.looks = append(w.looks, seen)
	}
	if len(w.due)+len(seen.Agents) <= enrolmentMost {
		for _, id := range seen.Agents {
			w.due[id] = time.Time{}
			if len(w.again) < enrolmentMost {
				w.again[id] = time.Now().Add(lookTimeout)
			}
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// suspect schedules a check of an identity that did not match its enrolment. One
// that is already scheduled is not checked sooner, however often it is used.
func (w *Enrolments) suspect(identity string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	_, waits := w.due[identity]
	w.mu.Unlock()
	if !waits {
		w.changed(erc8004.Changes{Agents: []string{identity}})
	}
}

// Run checks enrolments until ctx ends.
func (w *Enrolments) Run(ctx context.Context) error {
	if w == nil {
		return nil
	}
	tick := time.NewTicker(w.pause)
	defer tick.Stop()
	var kept time.Time
	for {
		if time.Since(kept) > enrolmentKeep {
			kept = time.Now()
			w.keep(ctx)
		}
		w.step(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-tick.C:
		}
	}
}

// keep keeps the chains with enrolments watched.
func (w *Enrolments) keep(ctx context.Context) {
	for chainID, registries := range w.chain.Reader.Registries() {
		for _, registry := range registries {
			some, err := w.page(ctx, registry, "", 1)
			if err != nil {
				w.log.Warn("read enrolments", "err", err)
			}
			names, err := w.names(ctx, registry, "", 1)
			if err != nil {
				w.log.Warn("read what identities began", "err", err)
			}
			twin := false
			if err := w.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
				twin, err = tx.AgentDocuments().TwinIn(ctx, registry)
				return err
			}); err != nil {
				w.log.Warn("read links of identities", "err", err)
			}
			if twin || len(some)+len(names) > 0 {
				w.chain.Reader.Keep(chainID)
			}
		}
	}
}

func (w *Enrolments) page(ctx context.Context, registry, after string, limit int) (some []storage.Enrolment, err error) {
	err = w.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		some, err = tx.Enrolments().List(ctx, registry, after, limit)
		return err
	})
	return some, err
}

// step checks the due enrolments and one page of each walk.
func (w *Enrolments) step(ctx context.Context) {
	now := time.Now()
	var due []string
	w.mu.Lock()
	for id, at := range w.due {
		if !at.After(now) {
			due = append(due, id)
			delete(w.due, id)
		}
	}
	for id, at := range w.again {
		if !at.After(now) {
			delete(w.again, id)
			if !slices.Contains(due, id) {
				due = append(due, id)
			}
		}
	}
	var lost []uint64
	for chainID, at := range w.lost {
		if !at.After(now) {
			lost = append(lost, chainID)
			delete(w.lost, chainID)
		}
	}
	walks := map[string]string{}
	for registry, after := range w.walk {
		walks[registry] = after
	}
	w.mu.Unlock()

	w.record(ctx)
	for _, chainID := range lost {
		if err := w.blocks(ctx, chainID); err != nil && ctx.Err() == nil {
			w.log.Warn("look at the blocks of enrolments", "chain", chainID, "err", err)
			w.blocksLater(chainID)
		}
	}
	for _, id := range due {
		w.sold(ctx, id)
		w.identity(ctx, id)
	}
	w.walkBegun(ctx)
	for registry, after := range walks {
		some, err := w.page(ctx, registry, after, enrolmentPage)
		if err != nil {
			w.log.Warn("read enrolments", "err", err)
			continue
		}
		for _, e := range some {
			w.settle(ctx, e)
		}
		w.mu.Lock()
		switch at, on := w.walk[registry]; {
		case !on || at != after: // begun again meanwhile
		case len(some) < enrolmentPage:
			delete(w.walk, registry)
		default:
			w.walk[registry] = some[len(some)-1].ERC8004
		}
		w.mu.Unlock()
	}
}

func (w *Enrolments) identity(ctx context.Context, id string) {
	var e storage.Enrolment
	err := w.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		e, err = tx.Enrolments().ByIdentity(ctx, id)
		return err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		w.later(id)
	default:
		w.settle(ctx, e)
	}
}

func (w *Enrolments) later(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due) < enrolmentMost {
		w.due[id] = w.retryAt()
	}
}

// blocksLater schedules another check of a chain's blocks.
func (w *Enrolments) blocksLater(chainID uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.lost[chainID]; !waits {
		w.lost[chainID] = w.retryAt()
	}
}

func (w *Enrolments) retryAt() time.Time { return time.Now().Add(min(enrolmentRetry, 10*w.pause)) }

// settle checks one enrolment and writes the result; what cannot be decided now is
// checked again later.
func (w *Enrolments) settle(ctx context.Context, e storage.Enrolment) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	write, err := w.chain.decide(ctx, e)
	if err == nil && write != nil {
		err = w.db.Write(ctx, write)
	}
	switch {
	case err == nil, errors.Is(err, storage.ErrNotFound): // enrolled otherwise meanwhile
	case errors.Is(err, storage.ErrKeyTaken):
		w.end(ctx, e, &endedError{why: protocol.EndedByKey})
	case errors.Is(err, erc8004.ErrRegistryNotAllowed), errors.Is(err, erc8004.ErrChainNotSupported):
	default:
		if ended, ok := errors.AsType[*endedError](err); ok {
			w.end(ctx, e, ended)
			return
		}
		w.later(e.ERC8004)
	}
}

func (w *Enrolments) end(ctx context.Context, e storage.Enrolment, ended *endedError) {
	err := w.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Enrolments().End(ctx, "node", e, ended.why); err != nil || ended.why != protocol.EndedByOwner {
			return err
		}
		return tx.Moves().Note(ctx, storage.IdentityMove{Agent: e.ERC8004, Owner: ended.owner, Former: e.Owner, Block: ended.block})
	})
	switch {
	case err == nil:
		w.log.Warn("enrolment ended", "handle", e.Handle, "identity", e.ERC8004, "reason", string(ended.why))
	case !errors.Is(err, storage.ErrNotFound):
		w.log.Warn("end enrolment", "handle", e.Handle, "err", err)
		w.later(e.ERC8004)
	}
}

// blocks ends the enrolments of a chain whose block is no longer part of it.
func (w *Enrolments) blocks(ctx context.Context, chainID uint64) error {
	for _, registry := range w.chain.Reader.Registries()[chainID] {
		for after := ""; ; {
			some, err := w.page(ctx, registry, after, 500)
			if err != nil {
				return err
			}
			if len(some) == 0 {
				break
			}
			after = some[len(some)-1].ERC8004
			if err := w.lostBlocks(ctx, chainID, some); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Enrolments) lostBlocks(ctx context.Context, chainID uint64, some []storage.Enrolment) error {
	var numbers []uint64
	for _, e := range some {
		if e.BlockHash != "" && !slices.Contains(numbers, e.Block) {
			numbers = append(numbers, e.Block)
		}
	}
	now := map[uint64]string{}
	for part := range slices.Chunk(numbers, blockBatch) {
		hashes, err := w.chain.Reader.BlockHashes(ctx, chainID, part)
		if err != nil {
			return err
		}
		for i, n := range part {
			now[n] = hashes[i]
		}
	}
	for _, e := range some {
		switch hash := now[e.Block]; {
		case e.BlockHash == "" || hash == e.BlockHash:
		case hash == "": // the chain is shorter now, or this endpoint lags
			w.blocksLater(chainID)
		default:
			w.end(ctx, e, &endedError{why: protocol.EndedByBlock})
		}
	}
	return nil
}

// endedError means that an enrolment is no longer valid.
type endedError struct {
	why   protocol.EnrolmentEnd
	owner string // with EndedByOwner: the present one, at a block
	block int64
}

func (e *endedError) Error() string { return "enrolment ended: " + e.why.Text() }

// errUndecided means that the chain has no answer yet.
var errUndecided = errors.New("the chain does not say yet")

// judge compares an enrolment with the chain's data of its agent. A nil error means
// that it is valid, follow that it may have to follow the record.
func judge(e storage.Enrolment, s erc8004.Control, err error) (follow bool, _ error) {
	switch {
	case errors.Is(err, erc8004.ErrNotRegistered):
		return false, &endedError{why: protocol.EndedByRegistry}
	case errors.Is(err, erc8004.ErrIdentityBound):
		return false, &endedError{why: protocol.EndedByBinding}
	case err != nil:
		return false, err
	case s.Block < e.Block: // this process lags the one that enrolled it
		return false, errUndecided
	case s.Owner != e.Owner:
		return false, &endedError{protocol.EndedByOwner, s.Owner, int64(s.Block)}
	case s.Wallet != e.Wallet:
		return false, &endedError{why: protocol.EndedByWallet}
	case len(s.Keys) == 0:
		return false, &endedError{why: protocol.EndedByKey}
	case s.Pending:
		return false, errUndecided // of keys that are new; a key that is gone has no authority meanwhile
	}
	return true, nil
}

// decide decides what to write about an enrolment; nil if nothing. It reads the
// chain, so it is called outside of any transaction.
func (c *Chain) decide(ctx context.Context, e storage.Enrolment) (func(context.Context, *storage.Tx) error, error) {
	id, err := erc8004.ParseID(e.ERC8004)
	if err != nil {
		return nil, nil // nothing can be said of it
	}
	if e.Owner == "" {
		return c.bind(ctx, e)
	}
	s, err := c.Reader.Control(ctx, id)
	follow, err := judge(e, s, err)
	if err != nil || !follow {
		return nil, err
	}
	keys := make([]storage.EnrolledKey, len(s.Keys))
	for i, k := range s.Keys {
		jwk, err := key.MarshalPublic(key.Public{Key: k.Public, Thumbprint: k.Thumbprint, ID: k.Thumbprint, Use: "sig"})
		if err != nil {
			return nil, err
		}
		keys[i] = storage.EnrolledKey{Thumbprint: k.Thumbprint, JWK: jwk}
	}
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Enrolments().FollowRecord(ctx, e, keys) }, nil
}

// bind is the fate of an enrolment that was made without asking the chain: it
// becomes valid for the agent's current owner if the chain confirms its key.
func (c *Chain) bind(ctx context.Context, e storage.Enrolment) (func(context.Context, *storage.Tx) error, error) {
	made, _, err := c.Enrolment(ctx, e.ERC8004, e.KeyID)
	switch protocol.CodeOf(err) {
	case "":
		made.Handle = e.Handle
		return func(ctx context.Context, tx *storage.Tx) error { return tx.Enrolments().Bind(ctx, made) }, nil
	case protocol.KeyUnknown:
		return nil, &endedError{why: protocol.EndedByKey}
	}
	_, err = judge(e, erc8004.Control{}, err)
	return nil, err
}

// Enrolment is what an enrolment of an identity by a key would name now, and the
// key. Its errors are those of Grant.
func (c *Chain) Enrolment(ctx context.Context, claimed, keyid string) (e storage.Enrolment, jwk []byte, err error) {
	grant, err := c.Grant(ctx, claimed, keyid)
	if err != nil {
		return e, nil, err
	}
	id, err := erc8004.ParseID(grant.Identity)
	if err != nil {
		return e, nil, err
	}
	hashes, err := c.Reader.BlockHashes(ctx, id.ChainID, []uint64{grant.Final})
	if err == nil && hashes[0] == "" {
		err = erc8004.ErrUnavailable
	}
	if err != nil {
		return e, nil, chainError(err)
	}
	jwk, err = key.MarshalPublic(key.Public{Key: grant.PublicKey, Thumbprint: keyid, ID: keyid, Use: "sig"})
	owner, wallet := grant.Controllers()
	return storage.Enrolment{ERC8004: grant.Identity, KeyID: grant.KeyID, Owner: owner, Wallet: wallet, Block: grant.Final, BlockHash: hashes[0]}, jwk, err
}
