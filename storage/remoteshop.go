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

// remoteWords is the index of the words and facets of shops of other nodes.
var remoteWords = wordIndex{table: "remote_shop_word", of: "remote_shop", steps: usualSteps}

// Limits of shops of other nodes.
const (
	MaxRemoteShops = 2000                // of one host
	GoneAfter      = 7 * 24 * time.Hour  // a node that did not answer for so long is marked
	gonePruned     = 30 * 24 * time.Hour // and after so long its shops are deleted
)

// A RemoteShop is a shop of another node.
type RemoteShop struct {
	Actor, Host string
	Agent       string // chain identity that this node verified, "" for none
	Page        string
	Summary     protocol.ShopSummary
	SeenAt      time.Time // when the log of its node was last read; zero: not known
}

// shopDoc is the document of a row.
type shopDoc struct {
	Page    string               `json:"page"`
	Summary protocol.ShopSummary `json:"summary"`
}

// RemoteShops reads and writes the shops of other nodes.
type RemoteShops struct{ tx *Tx }

func (tx *Tx) RemoteShops() RemoteShops { return RemoteShops{tx} }

// summaryText is the words that a shop is found by, with their beginnings, and its facets.
func summaryText(s *protocol.ShopSummary) string {
	t := &text{seen: map[string]bool{}}
	for _, field := range append([]string{s.Name, s.Headline, s.Category, categoryName(s.Category), s.City, cityName(s.City), s.Words}, s.Tags...) {
		t.words(field)
		t.starts(field)
	}
	t.put(facet(facetKind, string(protocol.Business)))
	t.put(facet(facetCategory, categoryName(s.Category)))
	t.put(facet(facetCity, cityName(s.City)))
	if s.AcceptsReturns {
		t.put(facet(facetReturns, ""))
	}
	for _, tag := range s.Tags {
		t.put(facet(facetTag, tag))
	}
	return string(t.b)
}

// Put stores a shop in place of what was known of it. It is false for a shop that its host has no room for.
func (rs RemoteShops) Put(ctx context.Context, s RemoteShop) (bool, error) {
	if err := rs.Drop(ctx, s.Actor); err != nil {
		return false, err
	}
	var n int
	if err := rs.tx.row(ctx, shopsOfHost, s.Host).Scan(&n); err != nil || n >= MaxRemoteShops {
		return false, err
	}
	doc, err := json.Marshal(shopDoc{s.Page, s.Summary})
	if err != nil {
		return false, fmt.Errorf("encode shop: %w", err)
	}
	var seq int64
	if err := rs.tx.row(ctx, `INSERT INTO remote_shop (actor, host, agent, doc) VALUES (?, ?, ?, ?) RETURNING seq`,
		s.Actor, s.Host, s.Agent, string(doc)).Scan(&seq); err != nil {
		return false, err
	}
	in := remoteWords.insert(rs.tx.db.engine)
	_, err = rs.tx.write(ctx, in.Into+in.Row, seq, summaryText(&s.Summary))
	return err == nil, err
}

// Drop deletes a shop, by its actor. What is not known is no error.
func (rs RemoteShops) Drop(ctx context.Context, actor string) error {
	return rs.drop(ctx, `actor = ?`, actor)
}

// DropHost deletes the shops of a host.
func (rs RemoteShops) DropHost(ctx context.Context, host string) error {
	return rs.drop(ctx, `host = ?`, host)
}

// DropUnder deletes the shops of a host and its sub-domains.
func (rs RemoteShops) DropUnder(ctx context.Context, host string) error {
	all, err := rs.tx.Subscriptions().List(ctx)
	for _, s := range all {
		if err == nil && slices.Contains(suffixes(s.Host), host) {
			err = rs.DropHost(ctx, s.Host)
		}
	}
	return err
}

// DropOf deletes the shops of a blocked author or host.
func (rs RemoteShops) DropOf(ctx context.Context, kind protocol.BlockKind, value string) error {
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

func (rs RemoteShops) drop(ctx context.Context, where string, value any) error {
	if err := rs.tx.dirty(); err != nil {
		return err
	}
	rows, err := rs.tx.query(ctx, shopsBy+where, value)
	seqs, err := collect(rows, err, scanInt)
	if err != nil || len(seqs) == 0 {
		return err
	}
	key := "seq"
	if rs.tx.db.engine == engineSQLite {
		key = "rowid"
	}
	for some := range slices.Chunk(seqs, 500) {
		in, args := inSeqs(some)
		if _, err := rs.tx.write(ctx, `DELETE FROM remote_shop_word WHERE `+strings.Replace(in, "seq", key, 1), args...); err != nil {
			return err
		}
		if _, err := rs.tx.write(ctx, `DELETE FROM remote_shop WHERE `+in, args...); err != nil {
			return err
		}
	}
	return nil
}

const (
	shopsOfHost = `SELECT count(*) FROM remote_shop WHERE host = ?`
	shopsBy     = `SELECT seq FROM remote_shop WHERE `
	hostsGone   = `SELECT host FROM subscription WHERE ok_at > 0 AND ok_at < ?`
	shopsBySeq  = `SELECT seq, actor, host, doc, COALESCE((SELECT max(ok_at) FROM subscription b WHERE b.host = r.host), 0) FROM remote_shop r WHERE `
)

// Prune deletes the shops of nodes that did not answer for 30 days, and returns how many hosts had some.
func (rs RemoteShops) Prune(ctx context.Context) (gone int, err error) {
	rows, err := rs.tx.query(ctx, hostsGone, millis(rs.tx.Now.Add(-gonePruned)))
	hosts, err := collect(rows, err, func(s scanner) (h string, err error) { return h, s.Scan(&h) })
	for _, h := range hosts {
		var n int
		if err == nil {
			err = rs.tx.row(ctx, shopsOfHost, h).Scan(&n)
		}
		if err == nil && n > 0 {
			gone++
			err = rs.DropHost(ctx, h)
		}
	}
	return gone, err
}

// remoteMerchants is the name of the list in cursors.
const remoteMerchants = "remote-merchants"

// IsRemoteCursor reports whether a cursor continues a list of shops of other nodes.
func IsRemoteCursor(after string) bool {
	_, err := protocol.ParseCursor(remoteMerchants, after)
	return after != "" && err == nil
}

// RemoteStart is the cursor before the first shop.
func RemoteStart() *string { return protocol.Cursor(remoteMerchants, number(math.MaxInt64)) }

// walked bounds how many shops one page of a list reads.
const walked = 1000

// List lists shops that meet every condition of q, those whose nodes told of them last first. A query for shops that are open
// finds none: their hours are at their nodes.
func (rs RemoteShops) List(ctx context.Context, q protocol.MerchantQuery, limit int, after string) (out protocol.Page[RemoteShop], err error) {
	out.Items = []RemoteShop{}
	before, err := position(remoteMerchants, after, math.MaxInt64)
	if err != nil || q.OpenNow {
		return out, err
	}
	f := newRemoteFilter(q)
	for read := 0; read < walked; {
		seqs, err := remoteWords.find(ctx, rs.tx, f.tokens, before, 100)
		if err != nil || len(seqs) == 0 {
			return out, err
		}
		shops, err := rs.bySeqs(ctx, seqs)
		if err != nil {
			return out, err
		}
		for _, seq := range seqs {
			s, ok := shops[seq]
			if !ok || !f.admits(&s.Summary) {
				before = seq
				continue
			}
			if len(out.Items) == limit {
				out.Next = protocol.Cursor(remoteMerchants, number(before))
				return out, nil
			}
			out.Items, before = append(out.Items, s), seq
		}
		if read += len(seqs); len(seqs) < 100 {
			return out, nil
		}
	}
	out.Next = protocol.Cursor(remoteMerchants, number(before))
	return out, nil
}

func (rs RemoteShops) bySeqs(ctx context.Context, seqs []int64) (map[int64]RemoteShop, error) {
	in, args := inSeqs(seqs)
	rows, err := rs.tx.query(ctx, shopsBySeq+in, args...)
	all := map[int64]RemoteShop{}
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var seq, ok int64
		var r RemoteShop
		var doc []byte
		if err := s.Scan(&seq, &r.Actor, &r.Host, &doc, &ok); err != nil {
			return none, err
		}
		var d shopDoc
		err = json.Unmarshal(doc, &d)
		r.Page, r.Summary = d.Page, d.Summary
		r.SeenAt = moment(ok)
		all[seq] = r
		return none, err
	})
	return all, err
}

// A remoteFilter is a query of shops: tokens that the index decides, and the rest.
type remoteFilter struct {
	tokens    []string
	not       []string // tokens
	near      *protocol.Geo
	radius    float64
	currency  string
	low, high int64
	priced    bool
}

func newRemoteFilter(q protocol.MerchantQuery) *remoteFilter {
	f := &remoteFilter{tokens: []string{facet(facetKind, string(protocol.Business))}}
	if q.Category != "" {
		f.tokens = append(f.tokens, facet(facetCategory, categoryName(q.Category)))
	}
	if q.City != "" {
		f.tokens = append(f.tokens, facet(facetCity, cityName(q.City)))
	}
	if q.AcceptsReturns {
		f.tokens = append(f.tokens, facet(facetReturns, ""))
	}
	parsed, _ := protocol.ParseQuery(q.Q)
	for _, tag := range parsed.Tags {
		if tag.Not {
			f.not = append(f.not, facet(facetTag, tag.Value))
		} else {
			f.tokens = append(f.tokens, facet(facetTag, tag.Value))
		}
	}
	last := ""
	for _, t := range parsed.Terms {
		words := foldWords(t.Text)
		if t.Not {
			f.not = append(f.not, words...)
			continue
		}
		if f.tokens = append(f.tokens, words...); !t.Phrase && len(words) > 0 {
			last = words[len(words)-1]
		}
	}
	if n := len(f.tokens) - 1; last != "" && f.tokens[n] == last && len(last) >= shortestStart && len([]rune(last)) <= longestStart {
		f.tokens[n] = startOf + last // it may be the beginning of a word
	}
	f.near, f.radius, _ = q.Place()
	prices := ItemQuery{Currency: q.In()}
	prices.Min, prices.Max, _ = q.Prices()
	f.currency, f.priced = prices.Currency, prices.priced()
	f.low, f.high = prices.bounds()
	return f
}

// admits decides what the index does not.
func (f *remoteFilter) admits(s *protocol.ShopSummary) bool {
	if f.near != nil && (s.Geo == nil || f.near.Distance(*s.Geo) > f.radius) {
		return false
	}
	if f.priced && !slices.ContainsFunc(s.Prices, func(p protocol.PriceSpan) bool {
		return p.Currency == f.currency && p.Low <= f.high && p.High >= f.low
	}) {
		return false
	}
	if len(f.not) == 0 {
		return true
	}
	has := strings.Fields(summaryText(s))
	return !slices.ContainsFunc(f.not, func(w string) bool { return slices.Contains(has, w) })
}
