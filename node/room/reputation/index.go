package reputation

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/protocol"
	"stoa/protocol/sorting"
	"stoa/storage"
)

// Bounds of one run of the index.
const (
	sliceBudget = 20     // slices of blocks, each of two requests or a few more
	storeAtOnce = 50     // events in one transaction
	backfill    = 50_000 // blocks before the newest final one in which events of an identity that is new here are looked for
	rewindBy    = 1024   // blocks that are read again when a final block was replaced
)

// Enqueue enqueues the index of each reputation registry that the node reads.
func (r *Reputation) Enqueue(ctx context.Context, tx *storage.Tx) error {
	if r.Chain == nil {
		return nil
	}
	for registry := range r.Chain.Reputations() {
		if err := r.enqueue(ctx, tx, storage.FeedbackJob, registry, tx.Now); err != nil {
			return err
		}
	}
	return nil
}

// enqueue enqueues a job of which one waits or runs over all processes.
func (r *Reputation) enqueue(ctx context.Context, tx *storage.Tx, kind storage.JobKind, args string, at time.Time) error {
	name := strings.TrimSpace(string(kind) + " " + args)
	return tx.Enqueue(ctx, storage.Job{Kind: kind, Lane: name, Dedupe: name, Args: []byte(args), RunAt: at})
}

// Index reads events of one registry, stores them, and enqueues the next run. The mark is moved in the
// transaction that stores what was read, if it is still where it was: an event is stored once, whatever
// stops and however many processes run.
func (r *Reputation) Index(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	registry := string(j.Args)
	if r.Chain == nil || r.Chain.Reputations()[registry] == "" {
		return nil, nil // the operator no longer configures it
	}
	more, err := r.index(ctx, registry)
	if err != nil {
		r.Log.Warn("reviews are not read", "registry", registry, "err", err)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		next := tx.Now.Add(r.Every)
		if more {
			next = tx.Now
		}
		due, err := tx.Feedbacks().Due(ctx, 1)
		if err == nil && len(due) > 0 {
			err = r.enqueue(ctx, tx, storage.FeedbackCheckJob, "", tx.Now)
		}
		if err != nil {
			return err
		}
		return r.enqueue(ctx, tx, storage.FeedbackJob, registry, next)
	}, nil
}

// index reads up to sliceBudget slices; more says that there are others.
func (r *Reputation) index(ctx context.Context, registry string) (more bool, err error) {
	id, err := erc8004.ParseID(registry + ":0")
	if err != nil {
		return false, err
	}
	var agents []storage.FeedbackAgent
	var stored storage.FeedbackMark
	var known bool
	if err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if stored, known, err = tx.Feedbacks().Mark(ctx, registry); err == nil {
			agents, err = tx.Feedbacks().Agents(ctx, registry)
		}
		return err
	}); err != nil || len(agents) == 0 && !known {
		return false, err
	}
	follow := slices.DeleteFunc(slices.Clone(agents), func(a storage.FeedbackAgent) bool { return !a.Known || a.Behind != nil })
	budget := sliceBudget
	if !known || len(follow) == 0 { // nothing to read up to now
		mark, err := r.Chain.FinalMark(ctx, id.ChainID)
		if err != nil || known && mark.Number <= stored.Block {
			if err == nil {
				err = r.adopt(ctx, registry, agents, stored.Block)
			}
			return false, err
		}
		from := &stored
		if !known {
			from = nil
		}
		to := storage.FeedbackMark{Block: mark.Number, Hash: mark.Hash}
		if moved, err := r.move(ctx, registry, from, to, nil); err != nil || !moved {
			return false, err
		}
		stored = to
	} else {
		for ; budget > 0; budget-- {
			next, done, err := r.slice(ctx, registry, id, follow, stored)
			if err != nil {
				return false, err
			}
			if stored = next; done {
				break
			}
		}
	}
	if err := r.adopt(ctx, registry, agents, stored.Block); err != nil {
		return false, err
	}
	behind, err := r.catchUp(ctx, registry, id, stored, budget)
	return budget == 0 || behind, err
}

// adopt notes identities that are new here, and those that no profile has any more.
func (r *Reputation) adopt(ctx context.Context, registry string, agents []storage.FeedbackAgent, final uint64) error {
	return r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		for _, a := range agents {
			if a.Known || a.Owner == "" { // whose it is, the chain says soon
				continue
			}
			start := int64(max(final, backfill) - backfill)
			if err := tx.Feedbacks().PutAgent(ctx, registry, a, &start); err != nil {
				return err
			}
		}
		return tx.Feedbacks().KeepPlace(ctx, registry, final)
	})
}

// slice reads and stores the next slice for the identities that are read together; done says that it was
// the last.
func (r *Reputation) slice(ctx context.Context, registry string, id erc8004.ID, follow []storage.FeedbackAgent, from storage.FeedbackMark) (
	to storage.FeedbackMark, done bool, err error,
) {
	page, err := r.read(ctx, id, follow, erc8004.Mark{Number: from.Block, Hash: from.Hash}, 0)
	if err != nil {
		return from, true, err
	}
	if page.Replaced {
		return r.rewind(ctx, registry, from)
	}
	if page.Upto.Number == from.Block {
		return from, true, nil
	}
	to = storage.FeedbackMark{Block: page.Upto.Number, Hash: page.Upto.Hash}
	moved, err := r.store(ctx, registry, id, follow, page.Events, func(ctx context.Context, tx *storage.Tx) (bool, error) {
		return tx.Feedbacks().MoveMark(ctx, registry, &from, to)
	})
	if err != nil || !moved {
		return from, true, err
	}
	return to, page.Upto.Number >= page.Final, nil
}

// read reads one slice for any number of identities.
func (r *Reputation) read(ctx context.Context, id erc8004.ID, agents []storage.FeedbackAgent, after erc8004.Mark, most uint64) (
	all erc8004.FeedbackPage, err error,
) {
	for part := range slices.Chunk(agents, erc8004.MaxFeedbackAgents) {
		numbers := make([]*big.Int, len(part))
		for i, a := range part {
			parsed, err := erc8004.ParseID(a.Agent)
			if err != nil {
				return all, err
			}
			numbers[i] = parsed.AgentID
		}
		at := after
		for first := true; first || at.Number < all.Upto.Number; first = false {
			page, err := r.Chain.Feedback(ctx, id, numbers, at, most)
			if err != nil || page.Replaced {
				return page, err
			}
			if page.Skipped {
				r.Log.Error("a block has more reviews than an answer can hold; they are not read", "chain", id.ChainID, "block", page.Upto.Number)
			}
			if at = page.Upto; most == 0 || all.Upto.Number == 0 {
				all.Upto, all.Final = page.Upto, page.Final
				most = page.Upto.Number // the other parts read the same blocks
			}
			all.Events = append(all.Events, page.Events...)
			if page.Upto.Number >= most {
				break
			}
		}
	}
	return all, nil
}

// rewind forgets what was read of blocks that the chain replaced.
func (r *Reputation) rewind(ctx context.Context, registry string, from storage.FeedbackMark) (to storage.FeedbackMark, done bool, err error) {
	to = storage.FeedbackMark{Block: max(from.Block, rewindBy) - rewindBy}
	r.Log.Error("final blocks of the chain were replaced; their reviews are read again", "registry", registry, "from", to.Block+1)
	moved, err := r.move(ctx, registry, &from, to, func(ctx context.Context, tx *storage.Tx) error {
		for {
			gone, err := tx.Feedbacks().DropAfter(ctx, registry, to.Block)
			if err != nil {
				return err
			}
			if len(gone) == 0 {
				return tx.Feedbacks().Unmoved(ctx, registry, to.Block)
			}
			for _, f := range gone {
				if err := r.uncount(ctx, tx, f); err != nil {
					return err
				}
			}
		}
	})
	if err != nil || !moved {
		return from, true, err
	}
	return to, false, nil
}

// move moves the mark together with what fn does.
func (r *Reputation) move(
	ctx context.Context, registry string, from *storage.FeedbackMark, to storage.FeedbackMark, fn func(context.Context, *storage.Tx) error,
) (moved bool, err error) {
	err = r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if moved, err = tx.Feedbacks().MoveMark(ctx, registry, from, to); err != nil || !moved || fn == nil {
			return err
		}
		return fn(ctx, tx)
	})
	return moved, err
}

// catchUp reads older blocks for identities that were new here, up to the mark of the registry.
func (r *Reputation) catchUp(ctx context.Context, registry string, id erc8004.ID, mark storage.FeedbackMark, budget int) (more bool, err error) {
	for ; budget > 0; budget-- {
		var agents []storage.FeedbackAgent
		if err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			agents, err = tx.Feedbacks().Agents(ctx, registry)
			return err
		}); err != nil {
			return false, err
		}
		// What the mark has not passed waits for it: the sale to the owner of an enrolment may be there.
		agents = slices.DeleteFunc(agents, func(a storage.FeedbackAgent) bool { return a.Behind == nil || a.Owner == "" || a.From > mark.Block })
		if len(agents) == 0 {
			return false, nil
		}
		lowest := *slices.MinFunc(agents, func(a, b storage.FeedbackAgent) int { return cmp.Compare(*a.Behind, *b.Behind) }).Behind
		agents = slices.DeleteFunc(agents, func(a storage.FeedbackAgent) bool { return *a.Behind != lowest })
		agents = agents[:min(len(agents), erc8004.MaxFeedbackAgents)]
		page := erc8004.FeedbackPage{Upto: erc8004.Mark{Number: uint64(lowest)}}
		if uint64(lowest) < mark.Block {
			if page, err = r.read(ctx, id, agents, page.Upto, mark.Block); err != nil {
				return false, err
			}
		}
		if _, err := r.store(ctx, registry, id, agents, page.Events, func(ctx context.Context, tx *storage.Tx) (bool, error) {
			upto := new(int64(page.Upto.Number))
			if page.Upto.Number >= mark.Block {
				upto = nil
			}
			// The mark may have moved on meanwhile: then these identities would miss what is between.
			now, _, err := tx.Feedbacks().Mark(ctx, registry)
			if err != nil {
				return false, err
			}
			if upto == nil && now != mark {
				upto = new(int64(min(mark.Block, now.Block)))
			}
			for _, a := range agents {
				if err := tx.Feedbacks().PutAgent(ctx, registry, a, upto); err != nil {
					return false, err
				}
			}
			return true, nil
		}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// store judges the events of a slice as far as it can without another call, and stores them; the last
// transaction also moves the mark. False: another process was there first.
func (r *Reputation) store(ctx context.Context, registry string, id erc8004.ID, agents []storage.FeedbackAgent, events []erc8004.Feedback,
	move func(context.Context, *storage.Tx) (bool, error),
) (moved bool, err error) {
	shops := map[string]storage.FeedbackAgent{}
	for _, a := range agents {
		shops[a.Agent] = a
	}
	sorting.Stable(events, func(a, b erc8004.Feedback) int {
		return int(storage.FeedbackPlace(a.Block, a.LogIndex) - storage.FeedbackPlace(b.Block, b.LogIndex))
	})
	given, err := r.examineAll(ctx, id, shops, events)
	if err != nil {
		return false, err
	}
	for first := 0; first == 0 || first < len(events); first += storeAtOnce {
		part := events[first:min(first+storeAtOnce, len(events))]
		last := first+storeAtOnce >= len(events)
		if err := r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if moved = true; last {
				if moved, err = move(ctx, tx); err != nil || !moved {
					return err
				}
			}
			touched := map[string]bool{}
			for _, e := range part {
				shop := shops[e.Agent.String()]
				if !touched[shop.Agent] {
					if _, err := tx.Feedbacks().Holding(ctx, shop.Agent); err != nil { // locks what is decided below
						return err
					}
				}
				touched[shop.Agent] = true
				if err := r.apply(ctx, tx, shop, e, given[e.Tx+fmt.Sprint(e.LogIndex)]); err != nil {
					return err
				}
			}
			for agent := range touched {
				if err := tx.Feedbacks().Trim(ctx, agent, protocol.MaxUncountedReviews); err != nil {
					return err
				}
			}
			return nil
		}); err != nil || !moved {
			return false, err
		}
	}
	return true, nil
}

// examineAll judges new feedback by its event, and by its file where that is in the event itself.
func (r *Reputation) examineAll(ctx context.Context, id erc8004.ID, shops map[string]storage.FeedbackAgent, events []erc8004.Feedback) (
	map[string]*storage.Feedback, error,
) {
	all := map[string]*storage.Feedback{}
	var sure []*storage.Feedback
	var ask []erc8004.Feedback
	for _, e := range events {
		if e.Kind != erc8004.FeedbackGiven {
			continue
		}
		f := feedbackOf(e, shops[e.Agent.String()])
		all[e.Tx+fmt.Sprint(e.LogIndex)] = &f
		if f.State == storage.FeedbackWaiting && strings.HasPrefix(e.URI, "data:") {
			if file, why := dataOf(e.URI); why != "" {
				refuse(&f, why)
			} else {
				readFile(&f, file)
			}
		}
		if f.State == storage.FeedbackWaiting && f.Doc.Receipt != "" && r.readOwnReceipt(&f) && f.State == storage.FeedbackWaiting {
			sure, ask = append(sure, &f), append(ask, e)
		}
	}
	if len(ask) == 0 {
		return all, nil
	}
	seen, err := r.Chain.Confirm(ctx, id, ask)
	if err != nil { // asked again by the checks
		r.Log.Warn("reviews are not confirmed by a second endpoint", "chain", id.ChainID, "err", err)
		return all, nil
	}
	for i, f := range sure {
		f.Doc.Confirmed = seen[i]
	}
	return all, nil
}

// apply stores one event.
func (r *Reputation) apply(ctx context.Context, tx *storage.Tx, shop storage.FeedbackAgent, e erc8004.Feedback, f *storage.Feedback) error {
	if e.Kind == erc8004.FeedbackMoved {
		return tx.Feedbacks().Moved(ctx, shop.Agent, e.Owner, storage.FeedbackPlace(e.Block, e.LogIndex), e.At)
	}
	old, err := tx.Feedbacks().Given(ctx, shop.Agent, e.Client, e.Index)
	if err != nil && err != storage.ErrNotFound {
		return err
	}
	stored := err == nil
	switch {
	case e.Kind == erc8004.FeedbackGiven && !stored:
		return r.insert(ctx, tx, *f)
	case e.Kind == erc8004.FeedbackRevoked && stored && old.Reason != protocol.ReviewRevoked:
		if err := r.uncount(ctx, tx, old); err != nil {
			return err
		}
		refuse(&old, protocol.ReviewRevoked)
		old.Proof, old.FeedID, old.Doc.Names = "", "", nil
		return tx.Feedbacks().Put(ctx, old)
	case e.Kind == erc8004.FeedbackResponded && stored && (e.Responder == shop.Owner || e.Responder == shop.Wallet):
		reply := protocol.ReviewReply{URI: protocol.Clip(strings.ToValidUTF8(e.URI, "\uFFFD"), maxKeptURI), Text: replyText(e.URI), At: e.At, Transaction: e.Tx}
		if slices.Contains(old.Doc.Responses, reply) {
			return nil
		}
		answer(&old, reply)
		return tx.Feedbacks().Put(ctx, old)
	}
	return nil
}

// insert stores new feedback: decided, where all is known, otherwise with a time for its check.
func (r *Reputation) insert(ctx context.Context, tx *storage.Tx, f storage.Feedback) error {
	if f.State == storage.FeedbackWaiting && f.Doc.Confirmed && f.Doc.Order != nil {
		if err := r.settle(ctx, tx, &f); err != nil {
			return err
		}
	}
	if f.State == storage.FeedbackWaiting {
		last, err := tx.Feedbacks().LastDue(ctx, f.Agent)
		if err != nil {
			return err
		}
		next := tx.Now // what is fetched for one business comes at a pace that no stranger sets
		if at := last.Add(r.Pace); at.After(next) {
			next = at
		}
		f.NextAt = &next
	}
	_, err := tx.Feedbacks().Insert(ctx, f)
	return err
}
