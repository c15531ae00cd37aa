package bench_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"
)

// A listing is a read that gives pages, with values for each of its filters:
// what is frequent, middling, rare and absent on a filled node.
type listing struct {
	op     *protocol.Operation
	axes   []axis
	bearer string // the caller; "" nobody
}

// An axis is a filter and its values. Not to filter is one of them by itself.
type axis struct {
	name   string
	values []string
}

var (
	frequent, middling, rare = fill.Word(0), fill.Word(150), fill.Word(30_000)

	words = axis{"q", []string{frequent, middling, rare, "absent", frequent + " " + fill.Word(1), fill.Word(2) + " " + fill.Word(3000), "हाथ में"}}
	asked = axis{"q", append(slices.Clone(words.values), `"`+frequent+" "+fill.Word(1)+`"`, frequent+" -"+fill.Word(1), "tag:"+fill.Tag(60)+" "+middling,
		"kind:business "+rare)}
	tags = axis{"tag", []string{fill.Tag(0), fill.Tag(60), fill.Tag(1990)}}
)

// listings are all that are for everyone. roots are posts with many replies and with few.
func listings(profiles int, roots []string) []listing {
	authors := []string{fill.Handle(0), fill.Handle(min(200, profiles-1)), fill.Handle(profiles - 1)}
	return []listing{
		{op: protocol.ReadBoard.Operation, axes: []axis{
			{"kind", []string{"offer", "challenge"}}, tags, words, {"author", authors},
			{"verifiedOnly", []string{"true"}}, {"resolved", []string{"true", "false"}}, {"root", roots},
		}},
		{op: protocol.GetBoardPost.Operation, axes: []axis{{"id", roots}, {"thread", []string{"true"}}}},
		{op: protocol.ReadFeed.Operation, axes: []axis{{"types", []string{"board_post", "merchant_joined", "review", "merchant_joined,board_post"}}}},
		{op: protocol.SearchAgents.Operation, axes: []axis{
			asked, {"kind", []string{"person", "business"}}, {"capability", []string{"scheduling", "do-" + fill.Tag(1), "do-" + fill.Tag(1500)}},
			tags, {"region", []string{"IN", "IN-KA", "FR"}}, {"hasIdentity", []string{"true", "false"}},
		}},
		{op: protocol.ListPeople.Operation, axes: []axis{asked}},
		{op: protocol.ListMerchants.Operation, axes: []axis{
			asked, {"category", []string{fill.Categories[0], fill.Categories[5], fill.Categories[11], "absent"}},
			{"city", []string{"Bangalore", "Cochin", "Leh", "Absent"}}, {"openNow", []string{"true"}},
			{"near", []string{"12.9756,77.605"}}, {"maxPrice", []string{"100"}}, {"acceptsReturns", []string{"true"}},
		}},
		{op: protocol.ListItems.Operation, axes: []axis{
			words, {"category", []string{fill.Categories[0], fill.Categories[5], "absent"}}, {"maxPrice", []string{"100"}}, {"minPrice", []string{"1000"}},
			{"availability", []string{"in_stock"}},
		}},
		{op: protocol.ListAttentionBoards.Operation, axes: []axis{{"category", []string{fill.BoardCategories[0], fill.BoardCategories[5], "absent"}}}},
	}
}

// A question is one request for a page of a listing.
type question struct {
	op     *protocol.Operation
	query  url.Values
	bearer string
	body   string // JSON, of what is asked by POST
}

// questions are every combination of the values of the axes that the declaration allows.
func (l listing) questions() []question {
	all := []question{{op: l.op, query: url.Values{}, bearer: l.bearer}}
	for _, a := range l.axes {
		for _, q := range slices.Clone(all) {
			for _, v := range a.values {
				with := url.Values{a.name: {v}}
				for name, values := range q.query {
					with[name] = values
				}
				all = append(all, question{op: l.op, query: with, bearer: l.bearer})
			}
		}
	}
	return slices.DeleteFunc(all, func(q question) bool { return strings.Contains(q.target(), "{") || q.refused() })
}

// refused reports whether the operation's rule over several members refuses the question.
func (q question) refused() bool {
	in := reflect.New(q.op.In).Interface()
	rule, ok := in.(protocol.Checker)
	if !ok {
		return false
	}
	for name, values := range q.query {
		if json.Unmarshal(fmt.Appendf(nil, "{%q: %q}", name, values[0]), in) != nil { // no string
			_ = json.Unmarshal(fmt.Appendf(nil, "{%q: %s}", name, values[0]), in)
		}
	}
	return len(rule.Check()) > 0
}

// target is the path and query of the question.
func (q question) target() string {
	query, path := url.Values{}, q.op.HTTP.Path
	for name, values := range q.query {
		if in := "{" + name + "}"; strings.Contains(path, in) {
			path = strings.ReplaceAll(path, in, values[0])
		} else {
			query[name] = values
		}
	}
	return path + "?" + query.Encode()
}

// with is the question with one more member.
func (q question) with(name, value string) question {
	query := url.Values{name: {value}}
	for n, v := range q.query {
		query[n] = v
	}
	q.query = query
	return q
}

// TestLists_EveryQuestion asks a small node questions of BenchmarkLists, so that none of them is refused there.
func TestLists_EveryQuestion(t *testing.T) {
	t.Parallel()
	h := &asker{House: nodetest.New(t)}
	what, err := fill.Parse("posts=2k,profiles=60,threads=40,boards=10")
	require.NoError(t, err)
	what.Base = h.Base
	require.NoError(t, fill.Fill(t.Context(), h.DB, what))
	keys := h.listKeys()
	all := counts(keys)
	for _, l := range append(listings(what.Profiles, h.roots()), privateListings(keys)...) {
		all = append(all, l.questions()...)
	}
	require.Greater(t, len(all), 10_000)
	r := rand.New(rand.NewPCG(storagetest.Seed(t), 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, q := range all[:storagetest.Rounds(t, len(all))] {
		h.get(q) // answers 200
	}
}

// TestLists_AskEveryFilter keeps the list of what is measured whole: a listing, or
// a filter, that is declared and not measured fails.
func TestLists_AskEveryFilter(t *testing.T) {
	t.Parallel()
	measured := map[string][]string{}
	for _, l := range append(listings(100, []string{"x"}), privateListings(listKeys{})...) {
		measured[l.op.Name] = append(measured[l.op.Name], "")
		for _, a := range l.axes {
			measured[l.op.Name] = append(measured[l.op.Name], a.name)
		}
	}
	h := nodetest.New(t)
	for _, op := range protocol.Operations() {
		if !op.ReadOnly {
			continue
		}
		in := h.Table.Schemas.Of(op.In)
		if in.Properties["after"] == nil || op.Streams() {
			continue
		}
		for name := range in.Properties {
			if name != "limit" && name != "after" && name != op.Secret {
				require.Contains(t, measured[op.Name], name, fmt.Sprintf("%s is a listing; add the filter to listings()", op.Name))
			}
		}
		require.Contains(t, measured, op.Name)
	}
}
