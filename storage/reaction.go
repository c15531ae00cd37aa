package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// A ReactionKind says what an actor of another server did with a post of this node.
type ReactionKind string

const (
	Like       ReactionKind = "like"
	Share      ReactionKind = "share"       // it boosted the post
	Quote      ReactionKind = "quote"       // a public post of it quotes the post, with this node's permission
	QuietQuote ReactionKind = "quiet quote" // likewise a post that is not public, or not known to be; it is not counted
)

// A Reaction is one actor's like, boost or quote of a post of this node.
type Reaction struct {
	Key           string // set by Add
	PostID, Actor string
	Kind          ReactionKind
	URI           string // id of the activity; of the quoting post
	Domain        string // registrable, of the actor
	At            time.Time
}

// Limits of reactions. A domain's are those within 24 hours that were not undone. [StockReactions] limits them in all.
const (
	MaxReactionsOfPost   = 20_000
	MaxReactionsOfDomain = 2_000
)

// dropReactionsAtOnce is how many reactions one call of Drop deletes.
const dropReactionsAtOnce = 500

var reactionTable = tableOf[Reaction]("reaction")

// Reactions reads and writes what actors of other servers did with posts of this node. How many a post has is in its row.
type Reactions struct{ tx *Tx }

func (tx *Tx) Reactions() Reactions { return Reactions{tx} }

// ReactionKey is the key of an actor's like or boost of a post, whatever activity said so, or of a quote of it.
func ReactionKey(r Reaction) string {
	kind, what := r.Kind, r.Actor
	if kind == Quote || kind == QuietQuote {
		kind, what = Quote, r.URI
	}
	sum := sha256.Sum256([]byte(string(kind) + "\n" + r.PostID + "\n" + what))
	return hex.EncodeToString(sum[:16])
}

const reactionsOfDay = `SELECT count(*) FROM (SELECT 1 FROM reaction WHERE domain = ? AND at > ? LIMIT ?) r`

// Add counts a reaction to a visible post of this node, once. It reports whether the reaction is stored now, and whether that is new: it
// is not stored where a limit is reached.
func (rs Reactions) Add(ctx context.Context, r Reaction) (stored, fresh bool, err error) {
	if err := rs.tx.dirty(); err != nil {
		return false, false, err
	}
	p, seq, err := rs.tx.Posts().lock(ctx, r.PostID)
	if err != nil || p.Node != nil || p.State != protocol.Visible {
		return false, false, orNothing(err)
	}
	r.Key, r.At = ReactionKey(r), rs.tx.Now
	if known, err := rs.tx.exists(ctx, `SELECT 1 FROM reaction WHERE key = ?`, r.Key); err != nil || known {
		return known, false, err
	}
	var today int
	if err := rs.tx.row(ctx, reactionsOfDay, r.Domain, millis(r.At.Add(-24*time.Hour)), MaxReactionsOfDomain).Scan(&today); err != nil {
		return false, false, err
	}
	if today >= MaxReactionsOfDomain || p.Likes+p.Shares+p.Quotes >= MaxReactionsOfPost {
		return false, false, nil
	}
	if err := reactionTable.insert(ctx, rs.tx, &r); err != nil {
		return false, false, err
	}
	n := map[ReactionKind]int{r.Kind: 1}
	return true, true, rs.tx.exec(ctx, countReactions+`seq = ?`, n[Like], n[Share], n[Quote], seq)
}

const countReactions = `UPDATE post SET likes = likes + ?, shares = shares + ?, quotes = quotes + ? WHERE `

// drop deletes reactions and lowers the counts of their posts.
func (rs Reactions) drop(ctx context.Context, where string, args ...any) ([]Reaction, error) {
	if err := rs.tx.dirty(); err != nil {
		return nil, err
	}
	gone, err := list[Reaction](ctx, rs.tx, `DELETE FROM reaction WHERE `+where+` RETURNING `+reactionTable.columns, args...)
	if err != nil {
		return nil, err
	}
	counts := map[string]map[ReactionKind]int{}
	for _, r := range gone {
		if counts[r.PostID] == nil {
			counts[r.PostID] = map[ReactionKind]int{}
		}
		counts[r.PostID][r.Kind]--
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		n := counts[id]
		if err := rs.tx.exec(ctx, countReactions+byID, append([]any{n[Like], n[Share], n[Quote]}, idRange(id)...)...); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

func (rs Reactions) dropKeys(ctx context.Context, keys []any) ([]Reaction, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return rs.drop(ctx, `key IN (`+marks(len(keys))+`)`, keys...)
}

// Withdraw deletes the reactions of an actor that an activity, or a quoting post, of that id made, and reports whether there was one.
func (rs Reactions) Withdraw(ctx context.Context, actor, uri string) (bool, error) {
	gone, err := rs.drop(ctx, `actor = ? AND uri = ?`, actor, uri)
	return len(gone) > 0, err
}

// WithdrawKey deletes the reaction of a key.
func (rs Reactions) WithdrawKey(ctx context.Context, key string) error {
	_, err := rs.dropKeys(ctx, []any{key})
	return err
}

// QuoteByKey returns a permitted quote of a post; ErrNotFound when there is none of that key.
func (rs Reactions) QuoteByKey(ctx context.Context, postID, key string) (*Reaction, error) {
	return orNil(find[Reaction](ctx, rs.tx, reactionTable.from+`WHERE key = ? AND post_id = ? AND kind IN ('quote', 'quiet quote')`, key, postID))
}

// DropReactions says whose reactions, or to which post, a job deletes: of one member.
type DropReactions struct {
	Post  string `json:"post,omitempty"`  // all if it is deleted, the quotes if it is hidden
	Actor string `json:"actor,omitempty"` // of another server
	Host  string `json:"host,omitempty"`  // with its sub-domains
	By    string `json:"by,omitempty"`    // of an actor: only those to posts of the agent with this handle
	From  string `json:"from,omitempty"`  // of a host: the key after which it continues; of an actor with By: the id
}

// EnqueueDrop queues a job that deletes reactions.
func (rs Reactions) EnqueueDrop(ctx context.Context, d DropReactions) error {
	args, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return rs.tx.Enqueue(ctx, Job{Kind: ReactionsJob, Lane: "reactions " + d.Post + d.Actor + d.Host, Args: args})
}

// DropOf has the reactions of a blocked actor or host deleted.
func (rs Reactions) DropOf(ctx context.Context, kind protocol.BlockKind, value string) error {
	switch kind {
	case protocol.BlockActor:
		return rs.EnqueueDrop(ctx, DropReactions{Actor: value})
	case protocol.BlockHost:
		return rs.EnqueueDrop(ctx, DropReactions{Host: value})
	}
	return nil
}

const (
	reactionsOfActor = `SELECT key FROM reaction WHERE actor = ? LIMIT ?`
	reactionsOfPost  = `SELECT key FROM reaction WHERE post_id = ? LIMIT ?`
	quotesOfPost     = `SELECT key FROM reaction WHERE post_id = ? AND kind IN ('quote', 'quiet quote') LIMIT ?`
	reactionsFrom    = `SELECT key, post_id, uri FROM reaction WHERE actor = ? AND uri > ? ORDER BY uri LIMIT ?`
	actorsOfHosts    = `SELECT key, actor FROM reaction WHERE key > ? ORDER BY key LIMIT ?`
)

// Drop deletes up to 500 reactions and returns them. next is what is left to do, nil for nothing.
func (rs Reactions) Drop(ctx context.Context, d DropReactions) (gone []Reaction, next *DropReactions, err error) {
	switch {
	case d.Host != "":
		return rs.dropHost(ctx, d)
	case d.By != "":
		return rs.dropBy(ctx, d)
	}
	query, of := reactionsOfActor, d.Actor
	if d.Post != "" {
		query, of = reactionsOfPost, d.Post
		switch p, err := rs.tx.Posts().ByID(ctx, d.Post); {
		case err != nil || p.State == protocol.Visible:
			return nil, nil, orNothing(err)
		case p.State == protocol.Hidden:
			query = quotesOfPost
		}
	}
	keys, err := list[any](ctx, rs.tx, query, of, dropReactionsAtOnce)
	if err == nil {
		gone, err = rs.dropKeys(ctx, keys)
	}
	if len(keys) == dropReactionsAtOnce {
		next = &d
	}
	return gone, next, err
}

// dropHost looks at the next 5000 reactions of all, since a host may have any number of sub-domains, and those of an actor are not in
// the order of hosts.
func (rs Reactions) dropHost(ctx context.Context, d DropReactions) (gone []Reaction, next *DropReactions, err error) {
	const look = 5000
	rows, err := rs.tx.query(ctx, actorsOfHosts, d.From, look)
	var keys []any
	n := 0
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var actor string
		if err = s.Scan(&d.From, &actor); err != nil {
			return none, err
		}
		n++
		_, host, _ := strings.Cut(actor, "://")
		host, _, _ = strings.Cut(host, "/")
		if slices.Contains(suffixes(host), d.Host) {
			keys = append(keys, d.From)
		}
		return none, nil
	})
	for some := range slices.Chunk(keys, dropReactionsAtOnce) {
		if err != nil {
			break
		}
		var more []Reaction
		more, err = rs.dropKeys(ctx, some)
		gone = append(gone, more...)
	}
	if n == look {
		next = &d
	}
	return gone, next, err
}

// dropBy looks at the next 500 reactions of an actor.
func (rs Reactions) dropBy(ctx context.Context, d DropReactions) (gone []Reaction, next *DropReactions, err error) {
	type some struct{ Key, PostID, URI string }
	found, err := list[some](ctx, rs.tx, reactionsFrom, d.Actor, d.From, dropReactionsAtOnce)
	if err != nil {
		return nil, nil, err
	}
	var keys []any
	for _, r := range found {
		p, err := rs.tx.Posts().ByID(ctx, r.PostID)
		if orNothing(err) != nil {
			return nil, nil, err
		}
		if err == nil && p.Author.Handle != nil && *p.Author.Handle == d.By {
			keys = append(keys, r.Key)
		}
		d.From = r.URI
	}
	if len(found) == dropReactionsAtOnce {
		next = &d
	}
	gone, err = rs.dropKeys(ctx, keys)
	return gone, next, err
}

// revokeQuotes has the quotes of a post that is not visible any more revoked, and of a deleted one all reactions deleted.
func (rs Reactions) revokeQuotes(ctx context.Context, p *protocol.StoredPost, state protocol.PostState) error {
	if p.Node != nil || state == protocol.Visible {
		return nil
	}
	query := quotesOfPost
	if state == protocol.Deleted {
		query = reactionsOfPost
	}
	some, err := rs.tx.exists(ctx, query, p.ID, 1)
	if err != nil || !some {
		return err
	}
	return rs.EnqueueDrop(ctx, DropReactions{Post: p.ID})
}
