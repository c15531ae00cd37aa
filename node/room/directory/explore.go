package directory

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// exploreAge is the age at which counts are made again.
const exploreAge = 5 * time.Minute

// explored is the counted data in compact form: for each listed profile the numbers
// of its values. A hundred thousand profiles take some megabytes.
type explored struct {
	*values
	texts  []value    // of values, as far as the rows name them
	places []int64    // of the profiles' versions, in order
	rows   [][]uint32 // of each place
	most   InUse
	ranked map[string][]string // values of each field of completed, the most frequent first
}

// InUse are the values that most listed profiles and shops have, the most frequent first, at most
// mostUsed of each.
type InUse struct{ Regions, Capabilities, Tags, Categories, Cities []string }

const mostUsed = 50

// Fields of shops, which are counted for InUse only: no field of ARD has these names.
const (
	categoryField = "\x00category"
	cityField     = "\x00city"
)

// InUse returns the values as they were some minutes ago at most; none while they are being counted for
// the first time.
func (d *Directory) InUse(ctx context.Context, tx *storage.Tx) (InUse, error) {
	x, err := d.Explored.Get(ctx, tx)
	if protocol.CodeOf(err) == protocol.Overloaded {
		return InUse{}, nil
	}
	return x.most, err
}

// used returns the values that most rows have.
func (x *explored) used() InUse {
	counts := make([]int, len(x.texts))
	for _, row := range x.rows {
		for _, n := range row {
			counts[n]++
		}
	}
	x.ranked = map[string][]string{}
	of := func(field string) (list []string) {
		for _, b := range x.buckets(protocol.ARDFacet{Field: field, Limit: len(x.texts)}, counts).Buckets {
			list = append(list, b.Value)
		}
		x.ranked[field] = list
		return list[:min(len(list), mostUsed)]
	}
	return InUse{of(protocol.ARDRegions), of(protocol.ARDCapabilities), of(protocol.ARDTags), of(categoryField), of(cityField)}
}

type value struct{ field, text string }

// values are all values ever seen, with their numbers. Counting adds to them.
type values struct {
	list    []value
	numbers map[value]uint32
	enough  int // more of them than this hold many that are gone
}

// counted are the fields that differ between entries of this node.
var counted = []string{protocol.ARDTags, protocol.ARDCapabilities, protocol.ARDKind, protocol.ARDLanguages, protocol.ARDRegions, protocol.ARDHasIdentity}

// count makes the rows of new versions since last, and copies the others: a version
// of a profile never changes.
func (d *Directory) count(ctx context.Context, tx *storage.Tx, last *explored) (explored, error) {
	const step = 500
	places, seqs, err := tx.Profiles().ListedPlaces(ctx)
	if err != nil {
		return explored{}, err
	}
	x := explored{places: places, rows: make([][]uint32, len(places))}
	if last == nil || len(last.list) > last.enough {
		last = &explored{values: &values{numbers: map[value]uint32{}}}
	}
	x.values = last.values
	var missing []int64
	at := map[int64]int{} // of the missing ones
	for i, j := 0, 0; i < len(places); i++ {
		for j < len(last.places) && last.places[j] < places[i] {
			j++
		}
		if j < len(last.places) && last.places[j] == places[i] {
			x.rows[i] = last.rows[j]
		} else {
			missing, at[places[i]] = append(missing, seqs[i]), i
		}
	}
	for some := range slices.Chunk(missing, step) {
		found, err := tx.Profiles().ListedBySeq(ctx, some)
		if err != nil {
			return explored{}, err
		}
		shops, err := tx.Merchants().BySeq(ctx, some)
		if err != nil {
			return explored{}, err
		}
		for i := range found {
			place, ok := at[found[i].Pos]
			if !ok {
				continue
			}
			row := x.row(protocol.ARDEntryOf(d.Base, d.Profile(&found[i].StoredProfile)))
			if shop := shops[seqs[place]]; shop != nil {
				row = x.put(row, categoryField, shop.Draft.Category)
				row = x.put(row, cityField, shop.Draft.City)
			}
			x.rows[place] = row
		}
	}
	if x.enough == 0 {
		x.enough = 2*len(x.list) + 10_000
	}
	x.texts = x.list
	x.most = x.used()
	return x, nil
}

func (v *values) row(e protocol.ARDEntry) []uint32 {
	row := []uint32{}
	for _, field := range append(counted, protocol.ARDType, protocol.ARDPublisherOf) {
		for _, text := range protocol.ARDValuesOf(e, field) {
			row = v.put(row, field, text)
		}
	}
	return row
}

// put adds a value to a row, unless it is empty or there already.
func (v *values) put(row []uint32, field, text string) []uint32 {
	one := value{field, text}
	n, ok := v.numbers[one]
	if !ok {
		n = uint32(len(v.list))
		v.numbers[one] = n
		v.list = append(v.list, one)
	}
	if text == "" || slices.Contains(row, n) {
		return row
	}
	return append(row, n)
}

// ExploreARD counts the matching entries by field (ARD 0.9, explore).
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
	x, err := d.Explored.Get(ctx, tx)
	if err != nil {
		return out, err
	}
	counts := make([]int, len(x.texts))
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
		matched, err := tx.Profiles().Match(ctx, q.Text)
		if err != nil {
			return out, err
		}
		slices.Sort(matched)
		i := 0
		for _, place := range matched {
			for i < len(x.places) && x.places[i] < place {
				i++
			}
			if i < len(x.places) && x.places[i] == place {
				add(x.rows[i])
			}
		}
	}
	for _, f := range in.ResultType.Facets {
		out.Facets[f.Field] = x.buckets(f, counts)
	}
	return out, nil
}

// filter returns a test of rows.
func (x explored) filter(terms []protocol.ARDTerm) func(row []uint32) bool {
	groups := make([][]bool, len(terms))
	for i, t := range terms {
		groups[i] = make([]bool, len(x.texts))
		for n, v := range x.texts {
			groups[i][n] = v.field == t.Path && t.Has(v.text)
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

func (x explored) buckets(f protocol.ARDFacet, counts []int) protocol.ARDBuckets {
	out := protocol.ARDBuckets{Buckets: []protocol.ARDBucket{}}
	limit, least := f.Limit, max(f.MinCount, 1)
	if limit == 0 {
		limit = 20
	}
	var all []protocol.ARDBucket
	for n, v := range x.texts {
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

// baseOf is the address of the node of an ActivityPub id.
func baseOf(id string) (string, bool) {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.Scheme + "://" + u.Host, true
}
