package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/protocol"
)

// What chain identities without a profile began here and opened with a token: threads, bids and
// meeting requests. Their column agent has the name of identity and owner (protocol.AgentName) while
// the token, the callback address and the browser that began the thing open it; null for everybody
// else's, and once that has ended. A name without an owner is from before owners were stored.
var begunTables = []string{"thread", "bid", "meeting"}

// begunBy returns the agent of a thing, by the name under which its writer is counted.
func begunBy(name string, a protocol.Author) *string {
	if a.Handle != nil || !strings.HasPrefix(name, "agent:") {
		return nil
	}
	return &name
}

// Begun reads and ends what chain identities began.
type Begun struct{ tx *Tx }

func (tx *Tx) Begun() Begun { return Begun{tx} }

// A Sale is who has an identity by a view of the chain.
type Sale struct {
	Agent string // chain identity, in lower case
	Owner string // address in lower case, "" for none
	Block int64  // of the view: it does not know of what was begun later
}

func begunList(table string) string {
	return `SELECT DISTINCT agent FROM ` + table + ` WHERE agent > ? AND agent < ? ORDER BY agent LIMIT ?`
}

// List returns names of identities and owners with open things in a registry, eip155:<chainId>:<address>,
// in order, those after a given one.
func (bs Begun) List(ctx context.Context, registry, after string, limit int) (names []string, err error) {
	after = max(after, "agent:"+registry+":")
	for _, table := range begunTables {
		some, err := list[string](ctx, bs.tx, begunList(table), after, "agent:"+registry+";", limit) // ; is the character after :
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(limit, len(names))], nil
}

// AgentOf returns the identity of a name of List.
func AgentOf(name string) string {
	agent, _, _ := strings.Cut(strings.TrimPrefix(name, "agent:"), "@")
	return agent
}

func begunOf(table string) string {
	return `SELECT id FROM ` + table + ` WHERE agent >= ? AND agent < ? AND agent <> ? ORDER BY agent LIMIT ?`
}

// of returns things that an identity began under other owners than one.
func (bs Begun) of(ctx context.Context, table, agent, owner string, limit int) ([]string, error) {
	name := protocol.AgentName(agent, "")
	return list[string](ctx, bs.tx, begunOf(table), name, strings.TrimSuffix(name, "@")+"A", name+owner, limit) // A is the character after @
}

// Has reports whether an identity has anything open here.
func (bs Begun) Has(ctx context.Context, agent string) (bool, error) {
	for _, table := range begunTables {
		if has, err := bs.tx.exists(ctx, `SELECT 1 FROM `+table+` WHERE agent = ? LIMIT 1`, "agent:"+agent); err != nil || has {
			return has, err
		}
		if some, err := bs.of(ctx, table, agent, "-", 1); err != nil || len(some) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// begunPart is how many things of a table one call of End ends at most.
const begunPart = 100

// End ends what opens the things that an identity began under other owners: read and status tokens,
// callback addresses, browsers. Threads are closed, which both sides are told. Bids, their money and
// meetings go on. Things without an owner become those of the present one. It returns how many it
// ended, and how many the view does not know yet. The caller calls it again while it ended any.
func (bs Begun) End(ctx context.Context, s Sale) (ended, newer int, err error) {
	if err := bs.tx.dirty(); err != nil {
		return 0, 0, err
	}
	end := map[string]func(context.Context, Sale, string) (bool, error){"thread": bs.thread, "bid": bs.bid, "meeting": bs.meeting}
	for _, table := range begunTables {
		name := protocol.AgentName(s.Agent, cmp.Or(s.Owner, "nobody"))
		if _, err := bs.tx.write(ctx, `UPDATE `+table+` SET agent = ? WHERE agent = ?`, name, "agent:"+s.Agent); err != nil {
			return 0, 0, err
		}
		ids, err := bs.of(ctx, table, s.Agent, s.Owner, begunPart)
		if err != nil {
			return 0, 0, err
		}
		for _, id := range ids {
			switch known, err := end[table](ctx, s, id); {
			case err != nil:
				return 0, 0, fmt.Errorf("end %s: %w", id, err)
			case known:
				ended++
			default:
				newer++
			}
		}
	}
	return ended, newer, nil
}

func (s Sale) knows(a protocol.Author) bool { return a.Proof.Block == nil || *a.Proof.Block <= s.Block }

// shut replaces the token of a thing by one that nobody has.
func (bs Begun) shut(ctx context.Context, table, id string) error {
	hash := protocol.SecretHash(protocol.NewReadToken())
	return one(bs.tx.write(ctx, `UPDATE `+table+` SET agent = NULL, token_hash = ? WHERE id = ?`, hash[:], id))
}

func (bs Begun) thread(ctx context.Context, s Sale, id string) (bool, error) {
	t, err := bs.tx.Threads().ByID(ctx, id)
	if err != nil || !s.knows(t.Author) {
		return false, err
	}
	if err := bs.shut(ctx, "thread", id); err != nil {
		return false, err
	}
	if _, err := bs.tx.write(ctx, `UPDATE thread SET visitor = NULL WHERE id = ?`, id); err != nil {
		return false, err
	}
	if err := bs.tx.Pushes().Drop(ctx, id); err != nil {
		return false, err
	}
	if err := bs.tx.Callbacks().End(ctx, id, "the writer's chain identity has another owner"); err != nil || t.State == protocol.ThreadClosed {
		return true, err
	}
	now := bs.tx.Now
	t.State, t.ClosedAt, t.ClosedBy, t.Callback = protocol.ThreadClosed, &now, "sale", ""
	if err := bs.tx.Threads().Save(ctx, t); err != nil {
		return false, err
	}
	if err := bs.tx.News().Append(ctx, NewsLapsed, id, "handle:"+t.Handle); err != nil {
		return false, err
	}
	return true, bs.tx.News().Append(ctx, NewsClosed, id, t.Author.Names()...)
}

func (bs Begun) bid(ctx context.Context, s Sale, id string) (bool, error) {
	b, err := bs.tx.Bids().ByID(ctx, id)
	if err != nil || !s.knows(b.Author) {
		return false, err
	}
	if _, err := bs.tx.AttentionBoards().ByID(ctx, b.Board); err != nil { // locks it
		return false, err
	}
	if b, err = bs.tx.Bids().ByID(ctx, id); err != nil {
		return false, err
	}
	b.Callback, b.Visitor = "", nil
	if err := bs.tx.Bids().Save(ctx, b); err != nil {
		return false, err
	}
	return true, bs.shut(ctx, "bid", id)
}

func (bs Begun) meeting(ctx context.Context, s Sale, id string) (bool, error) {
	m, err := bs.tx.Meetings().ByID(ctx, id)
	if err != nil || !s.knows(m.Author) {
		return false, err
	}
	if _, err := bs.tx.Profiles().lock(ctx, m.Handle); err != nil && err != ErrNotFound {
		return false, err
	}
	if m, err = bs.tx.Meetings().ByID(ctx, id); err != nil {
		return false, err
	}
	m.Callback, m.Visitor = "", nil
	if err := bs.tx.Meetings().Save(ctx, m); err != nil {
		return false, err
	}
	return true, bs.shut(ctx, "meeting", id)
}
