package operate

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stoa/identity/proof"
	"stoa/node/hall"
	"stoa/node/room/moderation"
	"stoa/protocol"
	"stoa/storage"
)

// Rules are the operator's blocks and limits as this process knows them. They are
// read again only when some process changed them, which one look a second finds out for
// all that is kept so ([storage.DB.Generation]).
type Rules struct {
	DB     *storage.DB
	Log    *slog.Logger
	Limits *hall.Limits
	Proofs *proof.Issuer
	Config hall.Rates
	Dev    bool // rates and proofs stay as they are

	reading  sync.Mutex    // held while reading
	known    atomic.Uint64 // one more than the generation that was read; 0 for none
	failedAt atomic.Int64  // when they could not be read
	blocks   atomic.Pointer[map[blocked]protocol.Block]
}

// A blocked is the subject of a block.
type blocked struct {
	kind  protocol.BlockKind
	value string
}

const rulesRetry = time.Second

// Fresh implements hall.Rules. When the rules have changed, the first caller reads them
// and the others wait for it; while they cannot be read, those known hold.
func (r *Rules) Fresh(ctx context.Context) {
	generation, _ := r.DB.Generation(ctx, storage.GroupRules)
	if r.known.Load() == generation+1 || time.Now().UnixNano()-r.failedAt.Load() < int64(rulesRetry) {
		return
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.known.Load() > generation || time.Now().UnixNano()-r.failedAt.Load() < int64(rulesRetry) {
		return
	}
	if err := r.read(context.WithoutCancel(ctx)); err != nil {
		if protocol.CodeOf(err) == protocol.Internal { // an unavailable database is logged by package storage
			r.Log.Error("blocks and limits cannot be read; those known hold", "err", err)
		}
		r.failedAt.Store(time.Now().UnixNano())
		return
	}
	r.known.Store(generation + 1)
}

func (r *Rules) read(ctx context.Context) error {
	var all []protocol.Block
	var set protocol.RunLimits
	err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if all, err = tx.Blocks().All(ctx); err != nil {
			return err
		}
		set, err = moderation.StoredLimits(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	known := make(map[blocked]protocol.Block, len(all))
	for _, b := range all {
		known[blocked{b.Kind, b.Value}] = b
	}
	r.blocks.Store(&known)
	if r.Dev {
		return nil
	}
	r.Limits.Set(r.Config.With(set.ReadRate, set.WriteRate, set.IdentityRate))
	level := 0
	if set.ProofLevel != nil {
		level = *set.ProofLevel
	}
	r.Proofs.SetFloor(level)
	return nil
}

// Blocked implements hall.Rules. A network's block applies only to writers
// without any other identity: a household is not its worst visitor.
func (r *Rules) Blocked(c protocol.Caller, handle string) error {
	known := r.blocks.Load()
	if known == nil || len(*known) == 0 || c.Standing == protocol.Operator {
		return nil
	}
	if handle == "" {
		handle = c.Handle
	}
	if handle == "" && len(c.Handles) == 1 {
		handle = c.Handles[0]
	}
	what := []blocked{{protocol.BlockKey, c.KeyID}, {protocol.BlockHandle, handle}}
	for _, agent := range protocol.AgentBlocks(c.Agent, c.Owner) {
		what = append(what, blocked{protocol.BlockAgent, agent})
	}
	if c.Agent == "" && handle == "" && c.Account == "" {
		what = append(what, blocked{protocol.BlockNetwork, c.Network})
	}
	for _, w := range what {
		b, ok := (*known)[w]
		if !ok || w.value == "" || b.Over(time.Now()) {
			continue
		}
		detail := "the operator of this node has blocked this " + names[w.kind]
		if b.ExpiresAt != nil {
			detail += " until " + b.ExpiresAt.Format(time.RFC3339)
		}
		if b.Reason != "" {
			detail += ": " + b.Reason
		}
		return protocol.Errorf(protocol.Forbidden, "%s", detail)
	}
	return nil
}

var names = map[protocol.BlockKind]string{
	protocol.BlockAgent: "chain identity", protocol.BlockKey: "key", protocol.BlockHandle: "profile", protocol.BlockNetwork: "network",
}
