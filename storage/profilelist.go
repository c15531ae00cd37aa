package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// Names of the lists of profiles in cursors.
const (
	listProfiles  = "agents"
	listPeople    = "people"
	listMerchants = "merchants"
)

// A ListedProfile is a profile in a list, with the merchant record if it has one;
// the record's items are not read.
type ListedProfile struct {
	StoredProfile
	Merchant *StoredMerchant
	Remote   *RemoteAgent // that it is, of another node; nil for one of this node

	pos int64 // its place in its list
}

// List returns listed profiles, those of this node and then those of others unless q is local. All filters combine; a q without any word finds
// nothing. The best matches of a q come first; without one, and of equal matches, those that are
// alive, then those that changed last. A walk shows the list as it was when it
// began, without profiles that were deleted or unlisted since.
func (ps Profiles) List(ctx context.Context, q protocol.AgentQuery) (AgentPage, error) {
	a, err := agentsAsked(q)
	if err != nil {
		return AgentPage{}, err
	}
	return ps.find(ctx, a)
}

func agentsAsked(q protocol.AgentQuery) (*agentList, error) {
	a := &agentList{name: listProfiles, q: q.Q, sort: q.Sort, local: q.Local, paging: q.Paging, tables: []string{profileTerms, itemTerms}}
	if err := a.ask(false); err != nil {
		return nil, err
	}
	a.search.facets = append(slices.Clip(a.search.facets), profileFacets(q)...)
	a.filter("kind", q.Kind != "")
	a.filter("capability", q.Capability != "")
	a.filter("tag", q.Tag != "")
	a.filter("region", q.Region != "")
	a.filter("hasIdentity", q.HasIdentity != nil)
	return a, nil
}

// ListPeople returns listed persons, as [Profiles.List] does.
func (ps Profiles) ListPeople(ctx context.Context, q protocol.PeopleQuery) (AgentPage, error) {
	a := &agentList{name: listPeople, q: q.Q, sort: q.Sort, local: q.Local, paging: q.Paging, tables: []string{profileTerms}}
	if err := a.ask(false, facet(facetKind, string(protocol.Person))); err != nil {
		return AgentPage{}, err
	}
	return ps.find(ctx, a)
}

func profileFacets(q protocol.AgentQuery) []string {
	var facets []string
	add := func(name, value string) {
		if value != "" {
			facets = append(facets, facet(name, value))
		}
	}
	add(facetKind, string(q.Kind))
	add(facetCapability, q.Capability)
	add(facetTag, q.Tag)
	add(facetRegion, q.Region)
	if q.HasIdentity != nil {
		if *q.HasIdentity {
			facets = append(facets, facet(facetIdentity, ""))
		} else {
			facets = append(facets, facet(facetNobody, ""))
		}
	}
	return facets
}

// A walk is a position in a list of profiles: the number of the clock at which it
// began, and the class and number of the last version seen.
type walk struct {
	clock  int64
	class  int
	before int64
}

func (w walk) String() string { return fmt.Sprintf("%d.%d.%d", w.clock, w.class, w.before) }

// beginWalk reads a cursor, or begins a walk. A walk that is older than the stored
// versions, or from the future of another database, is refused.
func (ps Profiles) beginWalk(ctx context.Context, listing, after string, classes int) (w walk, err error) {
	at, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return w, err
	}
	now, pruned, err := ps.clockNow(ctx)
	if err != nil {
		return w, err
	}
	if at == "" {
		return walk{now, 0, math.MaxInt64}, nil
	}
	if _, err := fmt.Sscanf(at, "%d.%d.%d", &w.clock, &w.class, &w.before); err != nil || w.String() != at || w.class < 0 || w.class >= classes || w.before < 0 {
		return w, errListCursor()
	}
	if w.clock < pruned || w.clock > now {
		return w, errOldWalk()
	}
	return w, nil
}

func errOldWalk() error {
	return protocol.Errorf(protocol.InvalidCursor, "after is from a listing that began too long ago; leave it out to start from the beginning")
}

// maxLooked limits the profiles that are read for one page. Only what no index can
// decide (phrases of three words, hours that have just changed, distances and prices
// at the ends of a range) makes a page read more than it shows; it then ends early and still has a next page.
const maxLooked = 1000

func (ps Profiles) list(
	ctx context.Context, listing string, s search, paging protocol.Paging, f *shopFilter,
) (out protocol.Page[ListedProfile], err error) {
	out.Items = []ListedProfile{}
	limit := bounded(paging.Limit)
	w, err := ps.beginWalk(ctx, listing, paging.After, s.classes())
	if err != nil || s.nothing {
		return out, err
	}
	last, looked := w, 0
	for w.class < s.classes() {
		want := limit + 1 - len(out.Items)
		if s.reads() || f.rough() {
			want += 20
		}
		found, err := ps.findVersions(ctx, &s, w, want, f != nil && f.open)
		if err != nil {
			return out, err
		}
		profiles, err := ps.ofVersions(ctx, found, true, s.reads())
		if err != nil {
			return out, err
		}
		sells, err := f.sellers(ctx, ps.tx, found)
		if err != nil {
			return out, err
		}
		for _, v := range found {
			p := profiles[v.Seq]
			if p == nil || !f.admits(ps.tx, p, sells[v.Seq]) || !s.fits(p) {
				w.before = v.Pos
				continue
			}
			if len(out.Items) == limit {
				out.Next = protocol.Cursor(listing, last.String())
				return out, nil
			}
			w.before = v.Pos
			out.Items = append(out.Items, *p)
			last = w
		}
		if len(found) < want {
			w.class, w.before = w.class+1, math.MaxInt64
		} else if looked += len(found); looked > maxLooked+limit {
			out.Next = protocol.Cursor(listing, w.String())
			return out, nil
		}
	}
	return out, nil
}

// reads reports whether the index cannot decide everything.
func (s *search) reads() bool { return len(s.phrases)+len(s.absent) > 0 }

// fits checks what the index cannot: whether the words of a phrase are all
// adjacent, and not only each pair of them.
func (s *search) fits(p *ListedProfile) bool {
	has := func(phrase []string) bool { return holds(&p.StoredProfile, p.Merchant, phrase) }
	return !slices.ContainsFunc(s.absent, has) && !slices.ContainsFunc(s.phrases, func(phrase []string) bool { return !has(phrase) })
}

type version struct{ Pos, Seq int64 }

// findVersions returns the next versions of a walk's class.
func (ps Profiles) findVersions(ctx context.Context, s *search, w walk, limit int, open bool) ([]version, error) {
	from, where, args := versionsOf(w, open, ps.tx.Now)
	if ps.tx.db.engine == enginePostgres && !s.plain() {
		return ps.findPostgres(ctx, s, w, from, where, args, limit)
	}
	text := `SELECT r.pos, r.seq FROM ` + from + ` WHERE ` + where + ` ORDER BY r.pos DESC LIMIT ?`
	if !s.plain() {
		text, args = wordsOf(s, w, from, where, args)
	}
	return list[version](ctx, ps.tx, text, append(args, limit)...)
}

// versionsOf selects the versions of a walk's moment, optionally only those open
// now. The stored open interval of a merchant may be over, so results are checked
// again.
func versionsOf(w walk, open bool, now time.Time) (from, where string, args []any) {
	from, where, args = `profile_rank r`, `r.pos < ? AND r.since <= ? AND r.until > ?`, []any{w.before, w.clock, w.clock}
	if open {
		from += ` CROSS JOIN merchant m`
		where += ` AND m.seq = r.seq AND m.closes > 0 AND m.opens <= ?`
		args = append(args, millis(now))
	}
	return from, where, args
}

// wordsOf queries SQLite's index first, which returns its rows in the order of pos.
func wordsOf(s *search, w walk, from, where string, args []any) (string, []any) {
	return `SELECT r.pos, r.seq FROM profile_word CROSS JOIN ` + from +
			` WHERE profile_word MATCH ? AND profile_word.rowid < ? AND r.pos = profile_word.rowid AND ` +
			where + ` ORDER BY profile_word.rowid DESC LIMIT ?`,
		append([]any{s.write(fts5, w.class), w.before}, args...)
}

// nearVersions is how many versions a search on PostgreSQL reads one by one before
// it uses the index for all matches.
const nearVersions = 400

// findPostgres runs at most two queries. With ORDER BY and LIMIT alone, the planner
// reads the whole table backwards for a rare word; with the index alone, it gathers
// every match of a common one. So it first reads the next few versions, which is
// enough for common words; then all matches by the index, of which it takes the
// first.
func (ps Profiles) findPostgres(ctx context.Context, s *search, w walk, from, where string, args []any, limit int) ([]version, error) {
	query := s.write(tsquery, w.class)
	floor := int64(-1)
	err := ps.tx.row(ctx, `SELECT pos FROM profile_rank WHERE pos < ? ORDER BY pos DESC OFFSET ? LIMIT 1`, w.before, nearVersions).Scan(&floor)
	if err != nil && err != ErrNotFound {
		return nil, err
	}
	match := `SELECT r.pos, r.seq FROM ` + from + ` WHERE ` + where + ` AND r.words @@ ?::tsquery`
	found, err := list[version](ctx, ps.tx, match+` AND r.pos >= ? ORDER BY r.pos DESC LIMIT ?`, append(append([]any{}, args...), query, floor, limit)...)
	if err != nil || len(found) == limit || floor < 0 {
		return found, err
	}
	// The planner does not know what reading a long text vector costs, and would rather read all versions by their places: so the words
	// are looked for first, alone.
	if err := ps.tx.raw(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, err
	}
	return list[version](ctx, ps.tx, byWords(from, where), append(append([]any{query}, args...), limit)...)
}

// byWords finds versions by the index of words.
func byWords(from, where string) string {
	return `WITH f AS MATERIALIZED (SELECT pos, seq, since, until FROM profile_rank WHERE words @@ ?::tsquery)
		SELECT r.pos, r.seq FROM ` + strings.Replace(from, "profile_rank r", "f r", 1) + ` WHERE ` + where + ` ORDER BY r.pos DESC LIMIT ?`
}

// ofVersions reads the profiles of versions, as they are now, by number; all of
// them or only those that are listed.
func (ps Profiles) ofVersions(ctx context.Context, found []version, listed, items bool) (map[int64]*ListedProfile, error) {
	profiles := map[int64]*ListedProfile{}
	if len(found) == 0 {
		return profiles, nil
	}
	seqs := make([]int64, len(found))
	for i, v := range found {
		seqs[i] = v.Seq
	}
	in, args := inSeqs(seqs)
	where := in
	if listed {
		where += ` AND listed`
	}
	list, err := list[profileRow](ctx, ps.tx, profileTable.from+`WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	for i := range list {
		p, err := list[i].profile()
		if err != nil {
			return nil, err
		}
		profiles[list[i].Seq] = &ListedProfile{StoredProfile: *p}
	}
	return profiles, ps.tx.Merchants().read(ctx, profiles, in, args, items)
}
