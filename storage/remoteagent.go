package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// remoteWords is the index of the words and facets of agents of other nodes.
var remoteWords = wordIndex{table: "remote_agent_word", of: "remote_agent", steps: usualSteps}

// Limits of agents of other nodes.
const (
	MaxRemoteAgents = 5000                // of one host
	GoneAfter       = 7 * 24 * time.Hour  // a node that did not answer for so long is marked
	gonePruned      = 30 * 24 * time.Hour // and after so long its agents are deleted
)

// A RemoteAgent is a listed agent of another node.
type RemoteAgent struct {
	Actor, Host string
	Agent       string // chain identity that this node verified, "" for none
	Summary     protocol.AgentSummary
	SeenAt      time.Time // when the log of its node was last read; zero: not known
}

// Profile is the profile as far as its node told it.
func (a *RemoteAgent) Profile() *StoredProfile {
	s := &a.Summary
	return &StoredProfile{Draft: s.Profile, ERC8004: a.Agent, Attention: s.Board != nil, Meetings: s.Meetings, Catalog: s.Catalog, UpdatedAt: s.Updated}
}

// Merchant is the record of a business, nil for none.
func (a *RemoteAgent) Merchant() *StoredMerchant {
	if a.Summary.Shop == nil {
		return nil
	}
	return &StoredMerchant{Draft: a.Summary.Shop.Record, ItemCount: a.Summary.Shop.Items, sells: a.Summary.Shop.Words}
}

// Prices is the span of the prices of the shop in a currency, nil where its node told of none.
func (a *RemoteAgent) Prices(currency string) *protocol.PriceSpan {
	for _, s := range a.Summary.Shop.Prices {
		if s.Currency == currency && 0 <= s.Low && s.Low <= s.High && s.High <= protocol.MaxMinor {
			return &s
		}
	}
	return nil
}

// Base is the address of its node.
func (a *RemoteAgent) Base() string {
	base, _, _ := strings.Cut(a.Actor, "/ap/agents/")
	return base
}

// Elsewhere says where the agent is, and since when its node does not answer, if that is long ago.
func (a *RemoteAgent) Elsewhere(now time.Time) protocol.Elsewhere {
	e := protocol.Elsewhere{Node: &a.Host}
	if !a.SeenAt.IsZero() && now.Sub(a.SeenAt) > GoneAfter {
		e.GoneSince = &a.SeenAt
	}
	return e
}

// RemoteAgents reads and writes the agents of other nodes.
type RemoteAgents struct{ tx *Tx }

func (tx *Tx) RemoteAgents() RemoteAgents { return RemoteAgents{tx} }

// Put stores an agent in place of what was known of it. It is false for one that its host has no room for.
func (rs RemoteAgents) Put(ctx context.Context, a RemoteAgent) (bool, error) {
	if err := rs.Drop(ctx, a.Actor); err != nil {
		return false, err
	}
	var n int
	if err := rs.tx.row(ctx, agentsOfHost, a.Host).Scan(&n); err != nil || n >= MaxRemoteAgents {
		return false, err
	}
	doc, err := json.Marshal(a.Summary)
	if err != nil {
		return false, fmt.Errorf("encode agent: %w", err)
	}
	var seq int64
	if err := rs.tx.row(ctx, `INSERT INTO remote_agent (actor, host, agent, doc) VALUES (?, ?, ?, ?) RETURNING seq`,
		a.Actor, a.Host, a.Agent, string(doc)).Scan(&seq); err != nil {
		return false, err
	}
	err = remoteWords.add(ctx, rs.tx, seq, a.words())
	return err == nil, err
}

// words are what the agent is found by.
func (a *RemoteAgent) words() string {
	words, _ := profileText(a.Profile(), a.Merchant())
	if a.Summary.Board != nil {
		words += " " + facet(facetBoard, "")
	}
	return words
}

// Drop deletes an agent, by its actor. What is not known is no error.
func (rs RemoteAgents) Drop(ctx context.Context, actor string) error {
	return rs.drop(ctx, `actor = ?`, actor)
}

// DropHost deletes the agents of a host.
func (rs RemoteAgents) DropHost(ctx context.Context, host string) error {
	return rs.drop(ctx, `host = ?`, host)
}

// DropUnder deletes the agents of a host and its sub-domains, and what followed directories have of them.
func (rs RemoteAgents) DropUnder(ctx context.Context, host string) error {
	if err := rs.tx.ARDSources().DropUnder(ctx, host); err != nil {
		return err
	}
	all, err := rs.tx.Subscriptions().List(ctx)
	for _, s := range all {
		if err == nil && slices.Contains(suffixes(s.Host), host) {
			err = rs.DropHost(ctx, s.Host)
		}
	}
	return err
}

// DropOf deletes the agents of a blocked author or host.
func (rs RemoteAgents) DropOf(ctx context.Context, kind protocol.BlockKind, value string) error {
	switch kind {
	case protocol.BlockActor:
		return rs.Drop(ctx, value)
	case protocol.BlockAgent:
		return rs.drop(ctx, `agent <> '' AND agent = ?`, value)
	case protocol.BlockHost:
		return rs.DropUnder(ctx, value)
	}
	return nil
}

func (rs RemoteAgents) drop(ctx context.Context, where string, value any) error {
	return rs.tx.dropWorded(ctx, remoteWords, agentsBy+where, value)
}

const (
	agentsOfHost = `SELECT count(*) FROM remote_agent WHERE host = ?`
	agentsBy     = `SELECT seq FROM remote_agent WHERE `
	hostsGone    = `SELECT host FROM subscription WHERE ok_at > 0 AND ok_at < ?`
	agentsBySeq  = `SELECT seq, actor, host, agent, doc, COALESCE((SELECT max(ok_at) FROM subscription b WHERE b.host = r.host), 0) FROM remote_agent r WHERE `
)

// Prune deletes the agents of nodes that did not answer for 30 days, and returns how many hosts had some.
func (rs RemoteAgents) Prune(ctx context.Context) (gone int, err error) {
	rows, err := rs.tx.query(ctx, hostsGone, millis(rs.tx.Now.Add(-gonePruned)))
	hosts, err := collect(rows, err, func(s scanner) (h string, err error) { return h, s.Scan(&h) })
	for _, h := range hosts {
		var n int
		if err == nil {
			err = rs.tx.row(ctx, agentsOfHost, h).Scan(&n)
		}
		if err == nil && n > 0 {
			gone++
			err = rs.DropHost(ctx, h)
		}
	}
	return gone, err
}

// remoteList begins the names of the lists in cursors.
const remoteList = "remote-"

// A RemoteQuery selects agents of other nodes, as a list of this node's own selects those.
type RemoteQuery struct {
	list     string
	search   search
	shop     *shopFilter
	category string // of an attention board, folded
}

// RemoteARD are the agents of other nodes that have all words of a text, and meet the terms as far as the index can decide.
func RemoteARD(text string, terms []protocol.ARDTerm) RemoteQuery {
	s := newPlainSearch(text, terms)
	s.facets = append(s.facets, facet(facetListed, ""))
	return RemoteQuery{list: listARD, search: s}
}

// Score is that of [Profiles.Search].
func (q *RemoteQuery) Score(a *RemoteAgent) int {
	return max(q.search.score(&ListedProfile{StoredProfile: *a.Profile(), Merchant: a.Merchant()}), 50)
}

// RemoteBoards are the persons of other nodes with an open attention board, of a category unless that is "".
func RemoteBoards(category string) (RemoteQuery, error) {
	return RemoteQuery{list: listBoards, search: search{facets: []string{facet(facetBoard, "")}}, category: foldCategory(category)}, nil
}

// WithRemote is a page of a list that has what this node has first, then what is at other nodes. entry makes an item of the list.
func WithRemote[T any](
	ctx context.Context, tx *Tx, own bool, paging protocol.Paging, here func() (protocol.Page[T], error),
	query func() (RemoteQuery, error), entry func(*RemoteAgent) T,
) (page protocol.Page[T], err error) {
	q, err := query()
	if err != nil {
		return page, err
	}
	more := func(limit int, after string) (protocol.Page[RemoteAgent], error) {
		return tx.RemoteAgents().List(ctx, q, limit, after)
	}
	return Then(own, paging, here, remoteList+q.list, more, entry)
}

// Then is a page of a list that continues with another one, unless own. more reads the other one, whose name in cursors is
// listing and whose places are numbers, the highest first; entry makes an item of the list.
func Then[T, E any](
	own bool, paging protocol.Paging, here func() (protocol.Page[T], error), listing string,
	more func(limit int, after string) (protocol.Page[E], error), entry func(*E) T,
) (page protocol.Page[T], err error) {
	page.Items = []T{}
	if _, err := protocol.ParseCursor(listing, paging.After); paging.After == "" || err != nil {
		if page, err = here(); err != nil || page.Next != nil || own {
			return page, err
		}
		paging.After = ""
	}
	room := paging.Size() - len(page.Items)
	found, err := more(max(room, 1), paging.After)
	switch {
	case err != nil:
		return page, err
	case room == 0 && len(found.Items) > 0:
		page.Next = protocol.Cursor(listing, number(math.MaxInt64))
	case room > 0:
		for i := range found.Items {
			page.Items = append(page.Items, entry(&found.Items[i]))
		}
		page.Next = found.Next
	}
	return page, nil
}

// ByActor returns an agent by its ActivityPub id; ErrNotFound when no followed node told of it.
func (rs RemoteAgents) ByActor(ctx context.Context, actor string) (RemoteAgent, error) {
	seq, err := find[int64](ctx, rs.tx, agentsBy+`actor = ?`, actor)
	if err != nil {
		return RemoteAgent{}, err
	}
	found, err := rs.bySeqs(ctx, []int64{seq})
	return found[seq], err
}

// List lists agents that meet every condition, those whose nodes told of them last first.
func (rs RemoteAgents) List(ctx context.Context, q RemoteQuery, limit int, after string) (protocol.Page[RemoteAgent], error) {
	return walkWords(ctx, rs.tx, remoteWords, remoteList+q.list, &q.search, limit, after, rs.bySeqs,
		func(a *RemoteAgent) bool { return q.admits(rs.tx, a) })
}

// admits decides what the index does not.
func (q *RemoteQuery) admits(tx *Tx, a *RemoteAgent) bool {
	p := &ListedProfile{StoredProfile: *a.Profile(), Merchant: a.Merchant()}
	if q.category != "" && (a.Summary.Board == nil || !slices.ContainsFunc(a.Summary.Board.Categories,
		func(c protocol.CategoryPrice) bool { return foldCategory(c.Name) == q.category })) {
		return false
	}
	sells := false
	if q.shop != nil && q.shop.prices.priced() && a.Summary.Shop != nil {
		low, high := q.shop.prices.bounds()
		sells = slices.ContainsFunc(a.Summary.Shop.Prices, func(s protocol.PriceSpan) bool {
			return s.Currency == q.shop.prices.Currency && s.Low <= high && s.High >= low
		})
	}
	return q.shop.admits(tx, p, sells) && q.search.fits(p)
}

func (rs RemoteAgents) bySeqs(ctx context.Context, seqs []int64) (map[int64]RemoteAgent, error) {
	in, args := inSeqs(seqs)
	rows, err := rs.tx.query(ctx, agentsBySeq+in, args...)
	all := map[int64]RemoteAgent{}
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var seq, ok int64
		var a RemoteAgent
		var doc []byte
		if err := s.Scan(&seq, &a.Actor, &a.Host, &a.Agent, &doc, &ok); err != nil {
			return none, err
		}
		err = json.Unmarshal(doc, &a.Summary)
		a.SeenAt = moment(ok)
		all[seq] = a
		return none, err
	})
	return all, err
}
