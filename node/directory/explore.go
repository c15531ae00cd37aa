package directory

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// exploreAge is how old counts may be.
const exploreAge = 5 * time.Minute

// explored is what is counted, kept in few words: for each listed profile the
// numbers of its values. A hundred thousand profiles are a few megabytes.
type explored struct {
	at     time.Time
	values []value            // by number
	rows   map[int64][]uint32 // by the profile's number
}

type value struct{ field, text string }

// explorer keeps the last explored and lets one caller at a time make it anew.
type explorer struct {
	making sync.Mutex
	mu     sync.Mutex // guards last
	last   *explored
}

// counted are the fields that differ between entries of this node.
var counted = []string{protocol.ARDTags, protocol.ARDCapabilities, protocol.ARDKind, protocol.ARDLanguages, protocol.ARDRegions, protocol.ARDHasIdentity}

// get returns what is kept, or makes it. While somebody makes it, the others have
// the old one; where there is none they come back.
func (e *explorer) get(ctx context.Context, tx *storage.Tx, base string, d *Directory) (*explored, error) {
	e.mu.Lock()
	last := e.last
	e.mu.Unlock()
	if last != nil && tx.Now.Sub(last.at) < exploreAge {
		return last, nil
	}
	if !e.making.TryLock() {
		if last != nil {
			return last, nil
		}
		return nil, &protocol.Error{Code: protocol.Overloaded, RetryAfter: 5 * time.Second, Detail: "The counts are being made; ask again in a moment."}
	}
	defer e.making.Unlock()
	fresh, err := count(ctx, tx, base, d)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.last = fresh
	e.mu.Unlock()
	return fresh, nil
}

func count(ctx context.Context, tx *storage.Tx, base string, d *Directory) (*explored, error) {
	const step = 1000
	x := &explored{at: tx.Now, rows: map[int64][]uint32{}}
	numbers := map[value]uint32{}
	for after := int64(0); ; {
		some, err := tx.ListedAfter(ctx, after, step)
		if err != nil {
			return nil, err
		}
		for i := range some {
			after = some[i].Seq
			x.rows[after] = x.row(numbers, protocol.ARDEntryOf(base, d.Profile(&some[i].StoredProfile)))
		}
		if len(some) < step {
			return x, nil
		}
	}
}

func (x *explored) row(numbers map[value]uint32, e protocol.ARDEntry) []uint32 {
	row := []uint32{}
	for _, field := range append(counted, protocol.ARDType, protocol.ARDPublisherOf) {
		for _, text := range protocol.ARDValuesOf(e, field) {
			v := value{field, text}
			n, ok := numbers[v]
			if !ok {
				n = uint32(len(x.values))
				numbers[v] = n
				x.values = append(x.values, v)
			}
			if !slices.Contains(row, n) {
				row = append(row, n)
			}
		}
	}
	return row
}

// ExploreARD counts how the entries that match divide (ARD 0.9, explore).
func (d *Directory) ExploreARD(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ARDExplore) (protocol.ARDExplored, error) {
	out := protocol.ARDExplored{ResultType: "facets", Facets: map[string]protocol.ARDBuckets{}}
	var q protocol.ARDExploreQuery
	if in.Query != nil {
		q = *in.Query
	}
	terms, faults := q.Filter.Terms("/query/filter")
	if len(faults) > 0 {
		return out, protocol.Invalid(faults...)
	}
	x, err := d.explorer.get(ctx, tx, d.Base, d)
	if err != nil {
		return out, err
	}
	counts := make([]int, len(x.values))
	pass := x.filter(terms)
	add := func(row []uint32) {
		if pass(row) {
			for _, n := range row {
				counts[n]++
			}
		}
	}
	if q.Text == "" {
		for _, row := range x.rows {
			add(row)
		}
	} else {
		matched, err := tx.MatchPlain(ctx, q.Text)
		if err != nil {
			return out, err
		}
		for _, seq := range matched {
			if row, ok := x.rows[seq]; ok {
				add(row)
			}
		}
	}
	for _, f := range in.ResultType.Facets {
		out.Facets[f.Field] = x.buckets(f, counts)
	}
	return out, nil
}

// filter returns a test of rows.
func (x *explored) filter(terms []protocol.ARDTerm) func(row []uint32) bool {
	groups := make([]map[uint32]bool, len(terms))
	for i, t := range terms {
		groups[i] = map[uint32]bool{}
		for n, v := range x.values {
			groups[i][uint32(n)] = v.field == t.Path && t.Has(v.text)
		}
	}
	return func(row []uint32) bool {
		for _, group := range groups {
			if !slices.ContainsFunc(row, func(n uint32) bool { return group[n] }) {
				return false
			}
		}
		return true
	}
}

func (x *explored) buckets(f protocol.ARDFacet, counts []int) protocol.ARDBuckets {
	out := protocol.ARDBuckets{Buckets: []protocol.ARDBucket{}}
	limit, least := f.Limit, max(f.MinCount, 1)
	if limit == 0 {
		limit = 20
	}
	var all []protocol.ARDBucket
	for n, v := range x.values {
		if v.field == f.Field && counts[n] > 0 {
			all = append(all, protocol.ARDBucket{Value: v.text, Count: counts[n]})
		}
	}
	slices.SortFunc(all, func(a, b protocol.ARDBucket) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	for _, b := range all {
		if len(out.Buckets) < limit && b.Count >= least {
			out.Buckets = append(out.Buckets, b)
		} else {
			out.OtherCount += b.Count
		}
	}
	return out
}

// baseOf is the address of the node that an ActivityPub id is of.
func baseOf(id string) (string, bool) {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.Scheme + "://" + u.Host, true
}
