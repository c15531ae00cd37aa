package directory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// SearchARD searches the directory for clients of Agentic Resource Discovery
// (ARD 0.9 §registry): the same profiles as Search, as entries.
func (d *Directory) SearchARD(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ARDSearch) (protocol.ARDFound, error) {
	out := protocol.ARDFound{Results: []protocol.ARDResult{}}
	if in.Federation != "none" {
		var err error
		if out.Referrals, err = d.referrals(ctx, tx); err != nil {
			return out, err
		}
	}
	terms, faults := in.Query.Filter.Terms("/query/filter")
	if len(faults) > 0 {
		return out, protocol.Invalid(faults...)
	}
	paging := protocol.Paging{Limit: in.PageSize, After: in.PageToken}
	if paging.Limit == 0 {
		paging.Limit = 10
	}
	result := func(d *Directory, p *storage.StoredProfile, score int) protocol.ARDResult {
		return protocol.ARDResult{ARDEntry: protocol.ARDEntryOf(d.Base, d.Profile(p)), Score: score, Source: d.Base + protocol.ARDPath}
	}
	here := func() (page protocol.Page[protocol.ARDResult], err error) {
		if !d.possible(terms) {
			return page, nil
		}
		found, err := tx.Profiles().Search(ctx, in.Query.Text, terms, paging.Limit, in.PageToken)
		return entries(found, func(p *storage.ScoredProfile) protocol.ARDResult { return result(d, &p.StoredProfile, p.Score) }), err
	}
	remote := storage.RemoteARD(in.Query.Text, terms)
	query := func() (storage.RemoteQuery, error) { return remote, nil }
	own := in.Federation == "none" || in.Federation == "referrals"
	nodes := func() (protocol.Page[protocol.ARDResult], error) {
		page, err := storage.WithRemote(ctx, tx, own, paging, here, query, func(a *storage.RemoteAgent) protocol.ARDResult {
			return result(elsewhere(a), a.Profile(), remote.Score(a))
		})
		slices.SortStableFunc(page.Items, byScore)
		return page, err
	}
	directories := func(limit int, after string) (protocol.Page[storage.FoundEntry], error) {
		found, err := tx.ARDSources().Search(ctx, in.Query.Text, terms, limit, after)
		slices.SortStableFunc(found.Items, func(a, b storage.FoundEntry) int { return cmp.Compare(b.Score, a.Score) })
		return found, err
	}
	page, err := storage.Then(own, paging, nodes, storage.ListDirectoryEntries, directories,
		func(e *storage.FoundEntry) protocol.ARDResult { return claimed(e, tx.Now) })
	if protocol.CodeOf(err) == protocol.InvalidCursor { // told in ARD's words
		err = protocol.Errorf(protocol.InvalidCursor, "pageToken is not one of this search; leave it out to begin again")
	}
	if err != nil {
		return out, err
	}
	for _, r := range page.Items {
		if matchesAll(terms, r.ARDEntry) {
			out.Results = append(out.Results, r)
		}
	}
	if page.Next != nil {
		out.PageToken = *page.Next
	}
	return out, nil
}

func byScore(a, b protocol.ARDResult) int { return cmp.Compare(b.Score, a.Score) }

// claimed is an entry of a followed directory, with the source that the directory names, else the directory.
func claimed(e *storage.FoundEntry, now time.Time) protocol.ARDResult {
	r := protocol.ARDResult{ARDEntry: e.ARDEntry, Score: e.Score, Source: cmp.Or(e.Source, e.Via), Via: e.Via}
	if now.Sub(e.OKAt) > storage.GoneAfter {
		r.GoneSince = &e.OKAt
	}
	return r
}

// possible reports whether entries of agents of this node can meet the terms
// that are the same for all of them.
func (d *Directory) possible(terms []protocol.ARDTerm) bool {
	every := protocol.ARDEntry{Identifier: "urn:air:" + protocol.ARDPublisher(d.Base) + ":agent:x", Type: protocol.ARDAgentCard}
	for _, t := range terms {
		if (t.Path == protocol.ARDType || t.Path == protocol.ARDPublisherOf) && !t.Matches(every) {
			return false
		}
	}
	return true
}

func matchesAll(terms []protocol.ARDTerm, e protocol.ARDEntry) bool {
	for _, t := range terms {
		if !t.Matches(e) {
			return false
		}
	}
	return true
}

// maxReferrals bounds how many other registries an answer names.
const maxReferrals = 20

// referrals are the registries that this node follows, and the nodes whose boards it follows: their directories are searched in
// the same way.
func (d *Directory) referrals(ctx context.Context, tx *storage.Tx) ([]protocol.ARDReferral, error) {
	followed, err := tx.Subscriptions().List(ctx)
	if err != nil {
		return nil, err
	}
	directories, err := tx.ARDSources().List(ctx)
	if err != nil {
		return nil, err
	}
	var list []protocol.ARDReferral
	seen := map[string]bool{}
	for _, s := range directories {
		if s.Registry && !s.OKAt.IsZero() && tx.Now.Sub(s.OKAt) <= storage.GoneAfter && len(list) < maxReferrals/2 {
			list = append(list, protocol.ARDReferralTo(s.URL))
		}
	}
	for _, s := range followed {
		base, ok := baseOf(s.Board)
		if !ok || seen[base] || s.LogURL == "" || s.State != storage.SubscriptionAccepted || len(list) == maxReferrals {
			continue
		}
		seen[base] = true
		list = append(list, protocol.ARDReferral{
			Identifier: "urn:air:" + protocol.ARDPublisher(base) + ":registry:stoa", DisplayName: s.Host,
			Type: protocol.ARDRegistry, URL: base + protocol.ARDPath + "/search",
		})
	}
	return list, nil
}
