package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stoa/protocol"
)

// An AgentPage is a page of profiles, and what the search did beyond the question.
type AgentPage struct {
	protocol.Page[ListedProfile]
	protocol.Finding
}

// An agentList is what is asked of a list of profiles.
type agentList struct {
	name   string
	q      string
	sort   protocol.ItemSort // "" is by relevance with words
	local  bool
	paging protocol.Paging
	tables []string // of counted words

	free    search // without filters
	search  search // with them, but for prices
	terms   []*term
	filters []string
	shop    *shopFilter
	seqs    map[int64]int64 // of versions that were found, by their places
}

// ask parses the q of a list whose rows have all of the facets.
func (a *agentList) ask(begins bool, facets ...string) (err error) {
	a.seqs = map[int64]int64{}
	a.free, a.terms, err = newSearch(a.q, begins, facets...)
	a.search = a.free
	return err
}

func (a *agentList) filter(name string, given bool) {
	if given {
		a.filters = append(a.filters, name)
	}
}

func (a *agentList) remote() RemoteQuery {
	return RemoteQuery{list: a.name, search: a.search, shop: a.shop}
}

// find is a page of a list.
func (ps Profiles) find(ctx context.Context, a *agentList) (out AgentPage, err error) {
	words := len(a.terms) > 0 && !a.search.nothing
	if words && (a.sort == "" || a.sort == protocol.SortRelevance) {
		return ps.relevant(ctx, a)
	}
	if words {
		now, _, err := ps.clockNow(ctx)
		if err != nil {
			return out, err
		}
		u, err := ps.question(a, now).understand(ctx, "")
		if out.Finding = u.Finding; err != nil || u.whole == nil {
			out.Items = []ListedProfile{}
			return out, err
		}
		a.search.also = u.whole
	}
	if a.sort == protocol.SortNear && a.shop != nil && a.shop.near != nil {
		out.Page, err = ps.nearest(ctx, a)
		return out, err
	}
	here := func() (protocol.Page[ListedProfile], error) {
		return ps.list(ctx, a.name, a.shop.priced(a.search), a.paging, a.shop)
	}
	query := func() (RemoteQuery, error) { return a.remote(), nil }
	out.Page, err = WithRemote(ctx, ps.tx, a.local || a.search.nothing, a.paging, here, query, listedRemote)
	return out, err
}

func listedRemote(r *RemoteAgent) ListedProfile {
	return ListedProfile{StoredProfile: *r.Profile(), Merchant: r.Merchant(), Remote: r}
}

// versions finds the places of versions of a moment by a condition.
func (ps Profiles) versions(ctx context.Context, a *agentList, c condition, w walk, limit int) ([]int64, error) {
	s := a.shop.priced(a.search)
	s.also = c
	found, err := ps.findVersions(ctx, &s, w, limit, a.shop != nil && a.shop.open)
	return a.places(found), err
}

func (a *agentList) places(found []version) []int64 {
	at := make([]int64, len(found))
	for i, v := range found {
		at[i], a.seqs[v.Pos] = v.Pos, v.Seq
	}
	return at
}

// question is the words of a list, with what finds profiles by them at a moment.
func (ps Profiles) question(a *agentList, clock int64) *question {
	newest := walk{clock, 0, math.MaxInt64}
	elsewhere := func(ctx context.Context, s *search) (int, error) {
		if a.local {
			return 0, nil
		}
		found, err := remoteWords.match(ctx, ps.tx, s, math.MaxInt64, 1)
		return len(found), err
	}
	return &question{
		tx: ps.tx, q: a.q, terms: a.terms, tables: a.tables, filters: a.filters,
		find: func(ctx context.Context, c condition, limit int) (at []int64, more int, err error) {
			if at, err = ps.versions(ctx, a, c, newest, limit); err == nil && len(at) == 0 {
				more, err = elsewhere(ctx, a.search.with(c))
			}
			return at, more, err
		},
		any: func(ctx context.Context, c condition) (bool, error) {
			found, err := ps.findVersions(ctx, a.free.with(c), newest, 1, false)
			if err != nil || len(found) > 0 {
				return true, err
			}
			n, err := elsewhere(ctx, a.free.with(c))
			return n > 0, err
		},
	}
}

// relevant is a page of a list by relevance: the profiles of this node, then those of others.
func (ps Profiles) relevant(ctx context.Context, a *agentList) (out AgentPage, err error) {
	out.Items = []ListedProfile{}
	listing, resumed := a.name, a.paging.After != ""
	elsewhere := remoteList + a.name
	if _, err := protocol.ParseCursor(elsewhere, a.paging.After); resumed && err == nil {
		listing = elsewhere
	}
	w, err := resumeRanked(listing, a.paging.After)
	if err != nil {
		return out, err
	}
	now, pruned, err := ps.clockNow(ctx)
	if err != nil {
		return out, err
	}
	way := ""
	if resumed {
		if way = string(w.way); listing == a.name && (w.clock < pruned || w.clock > now) {
			return out, errOldWalk()
		}
	} else {
		w.clock = now
	}
	u, err := ps.question(a, w.clock).understand(ctx, way)
	if out.Finding = u.Finding; err != nil || u.whole == nil {
		return out, err
	}
	if !resumed {
		w = beginRanked(&u, math.MaxInt64, now)
	}
	limit := bounded(a.paging.Limit)
	if listing == a.name {
		stages := u.stages
		next, err := ps.rankedHere(a, &out, w.clock, limit).walk(ctx, &u, w, resumed)
		if err != nil || next != "" || a.local {
			out.Next = cursorTo(listing, next)
			return out, err
		}
		u.stages, u.first, u.few, resumed = stages, nil, false, false
		w = beginRanked(&u, math.MaxInt64, 0)
	}
	begin, room := w, limit-len(out.Items)
	next, err := ps.rankedElsewhere(a, &out, max(room, 1)).walk(ctx, &u, w, resumed)
	if room == 0 && len(out.Items) > limit { // on the next page
		out.Items, next = out.Items[:limit], begin.String()
	}
	out.Next = cursorTo(elsewhere, next)
	return out, err
}

// rankedHere are the profiles of this node as a search by relevance reads them.
func (ps Profiles) rankedHere(a *agentList, out *AgentPage, clock int64, limit int) *rankedList {
	l := profilesRanked(out, limit)
	l.fixed = true
	l.find = func(ctx context.Context, c condition, from int64, limit int) ([]int64, error) {
		return ps.versions(ctx, a, c, walk{clock, 0, from}, limit)
	}
	l.readRows = func(ctx context.Context, at []int64) ([]ListedProfile, error) { return ps.fitting(ctx, a, at) }
	return &l.rankedList
}

// fitting reads the profiles of versions that are listed and meet the conditions.
func (ps Profiles) fitting(ctx context.Context, a *agentList, at []int64) (rows []ListedProfile, err error) {
	found := make([]version, len(at))
	for i, pos := range at {
		found[i] = version{pos, a.seqs[pos]}
	}
	profiles, err := ps.ofVersions(ctx, found, true, a.search.reads())
	if err != nil {
		return nil, err
	}
	sells, err := a.shop.sellers(ctx, ps.tx, found)
	for _, v := range found {
		if p := profiles[v.Seq]; err == nil && p != nil && a.shop.admits(ps.tx, p, sells[v.Seq]) && a.search.fits(p) {
			p.pos = v.Pos
			rows = append(rows, *p)
		}
	}
	return rows, err
}

// rankedElsewhere are the profiles of other nodes as a search by relevance reads them.
func (ps Profiles) rankedElsewhere(a *agentList, out *AgentPage, limit int) *rankedList {
	l := profilesRanked(out, limit)
	l.find = func(ctx context.Context, c condition, from int64, limit int) ([]int64, error) {
		return remoteWords.match(ctx, ps.tx, a.search.with(c), from, limit)
	}
	l.readRows = func(ctx context.Context, at []int64) ([]ListedProfile, error) { return ps.fittingElsewhere(ctx, a, at) }
	return &l.rankedList
}

func (ps Profiles) fittingElsewhere(ctx context.Context, a *agentList, at []int64) (rows []ListedProfile, err error) {
	if len(at) == 0 {
		return nil, nil
	}
	agents, err := ps.tx.RemoteAgents().bySeqs(ctx, at)
	q := a.remote()
	for _, seq := range at {
		if r, ok := agents[seq]; err == nil && ok && q.admits(ps.tx, &r) {
			rows = append(rows, listedRemote(&r))
			rows[len(rows)-1].pos = seq
		}
	}
	return rows, err
}

// A profileRanking shows profiles on a page.
type profileRanking struct {
	rankedList
	rows     []ListedProfile
	readRows func(ctx context.Context, at []int64) ([]ListedProfile, error)
}

func profilesRanked(out *AgentPage, limit int) *profileRanking {
	l := &profileRanking{}
	l.rankedList = rankedList{
		limit: limit, most: maxLooked, begin: math.MaxInt64,
		number: func(pos int64) int64 { return pos },
		read: func(ctx context.Context, at []int64) (n int, err error) {
			l.rows, err = l.readRows(ctx, at)
			return len(l.rows), err
		},
		fields: func(row int, _ bool) []field { return l.rows[row].fields() },
		place:  func(row int) int64 { return l.rows[row].pos },
		show:   func(row int) { out.Items = append(out.Items, l.rows[row]) },
	}
	return l
}

// nearRows is how many businesses of a circle are compared by distance, of this node and of others.
const nearRows = 1000

// A nearWalk is a position in a list by distance: its moment, and the last business, in millimetres and by its place.
type nearWalk struct{ clock, distance, pos int64 }

func (w nearWalk) String() string { return fmt.Sprintf("n%d.%d.%d", w.clock, w.distance, w.pos) }

// nearest lists businesses, the nearest first.
func (ps Profiles) nearest(ctx context.Context, a *agentList) (out protocol.Page[ListedProfile], err error) {
	out.Items = []ListedProfile{}
	at, err := protocol.ParseCursor(a.name, a.paging.After)
	if err != nil {
		return out, err
	}
	now, pruned, err := ps.clockNow(ctx)
	if err != nil {
		return out, err
	}
	w := nearWalk{clock: now, distance: -1}
	if at != "" {
		if _, err := fmt.Sscanf(at, "n%d.%d.%d", &w.clock, &w.distance, &w.pos); err != nil || w.String() != at || w.distance < 0 {
			return out, errListCursor()
		}
		if w.clock < pruned || w.clock > now {
			return out, errOldWalk()
		}
	}
	limit := bounded(a.paging.Limit)
	rows, err := ps.around(ctx, a, w, func(all []ListedProfile) bool { return len(all) > limit })
	if len(rows) > limit {
		rows = rows[:limit]
		last := nearWalk{w.clock, a.shop.millimetres(&rows[limit-1]), rows[limit-1].pos}
		out.Next = protocol.Cursor(a.name, last.String())
	}
	out.Items = append(out.Items, rows...)
	return out, err
}

const smallestCircle = 1000 // metres

// around are businesses that are farther away than the last one of a walk, the nearest first, until there are enough. It reads circles
// around the place, each four times as wide as the one before, which adds what is outside of that one: of more than nearRows in a circle
// only the first ones of the list are compared, and the nearest may not be among them.
func (ps Profiles) around(ctx context.Context, a *agentList, w nearWalk, enough func([]ListedProfile) bool) (all []ListedProfile, err error) {
	radius, inner := min(smallestCircle, a.shop.radius), -1.0
	for radius < a.shop.radius && 1000*radius < float64(w.distance) {
		radius = min(4*radius, a.shop.radius)
	}
	for ; ; inner, radius = radius, min(4*radius, a.shop.radius) {
		rows, err := ps.within(ctx, a, w, radius)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			if a.shop.near.Distance(*p.Merchant.Draft.Geo) > inner {
				all = append(all, p)
			}
		}
		if radius == a.shop.radius || enough(all) {
			return all, nil
		}
	}
}

func (f *shopFilter) millimetres(p *ListedProfile) int64 {
	return int64(1000 * f.near.Distance(*p.Merchant.Draft.Geo))
}

// within are the businesses in a circle that are farther away than the last one of a walk, the nearest first.
func (ps Profiles) within(ctx context.Context, a *agentList, w nearWalk, radius float64) ([]ListedProfile, error) {
	circle, f := *a, *a.shop
	f.radius, circle.shop = radius, &f
	groups := slices.Clone(a.search.groups) // the last are the cells
	groups[len(groups)-1] = cellsAround(*f.near, radius)
	circle.search.groups = groups
	at, err := ps.versions(ctx, &circle, a.search.also, walk{w.clock, 0, math.MaxInt64}, nearRows)
	if err != nil {
		return nil, err
	}
	rows, err := ps.fitting(ctx, &circle, at)
	if err == nil && !a.local {
		var more []ListedProfile
		if at, err = remoteWords.match(ctx, ps.tx, &circle.search, math.MaxInt64, nearRows); err == nil {
			more, err = ps.fittingElsewhere(ctx, &circle, at)
		}
		for i := range more {
			more[i].pos -= math.MaxInt64 // after those of this node
		}
		rows = append(rows, more...)
	}
	places := make([][2]int64, 0, len(rows))
	for i := range rows {
		d := f.millimetres(&rows[i])
		if d > w.distance || d == w.distance && rows[i].pos < w.pos {
			places = append(places, [2]int64{d, int64(i)}) // of equal distance in the order of the list
		}
	}
	inOrder(places)
	sorted := make([]ListedProfile, len(places))
	for i, p := range places {
		sorted[i] = rows[p[1]]
	}
	return sorted, err
}
