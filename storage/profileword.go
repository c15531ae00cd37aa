package storage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"stoa/protocol"
)

// The tokens of a profile in the directory's index. A word is indexed plainly and,
// if it occurs in a better place, also in that place's form, so that each class of
// a search is a separate query:
//
//	name  name and handle
//	head  these, headline, tags and capabilities
//	plain these, description, needs, and what a merchant's record says
//
// The words of a merchant's items are indexed plainly, too (itemword.go). The words of a business are
// indexed with their beginnings in the same forms, so that a search for one reads a single list. Two adjacent words are
// also one token, so that phrases are found without positions. The index also
// contains facets (word.go).
const (
	formPlain = ""
	formHead  = "\ue001"
	formName  = "\ue002"
	pairOf    = "\ue003" // between the two words of a pair
	startOf   = "\ue004" // before the beginning of a word
)

// forms are the forms of the classes, the best first.
var forms = [...]string{formName, formHead, formPlain}

// maxText is the maximum size of the words of one version of a profile, in bytes:
// PostgreSQL accepts a vector of 1 MiB. Words after that are not found.
const maxText = 768 << 10

// A text is the tokens of one version of a profile.
type text struct {
	seen map[string]bool
	b    []byte
	most int // size limit in bytes

	begins bool // add adds the beginnings of words
}

func (t *text) put(token string) {
	if !t.seen[token] {
		t.seen[token] = true
		t.b = append(append(t.b, token...), ' ')
	}
}

// add adds the words and pairs of s in the forms from the given class down.
func (t *text) add(class int, s string) {
	words := foldWords(s)
	for i, w := range words {
		if len(t.b) > t.most {
			return
		}
		for _, form := range forms[class:] {
			t.put(form + w)
			if t.begins {
				t.start(form, w)
			}
			if i > 0 {
				t.put(form + words[i-1] + pairOf + w)
			}
		}
	}
}

// private reports whether a character marks a token that is no word.
func private(r rune) bool { return r >= 0xe000 && r <= 0xf8ff }

func foldWords(s string) []string { return strings.Fields(string(fold(nil, s))) }

// profileText is the text of a listed profile; m may be nil.
func profileText(p *StoredProfile, m *StoredMerchant) string {
	d := &p.Draft
	t := &text{seen: map[string]bool{}, most: maxText, begins: d.Kind == protocol.Business}
	eachField(p, m, t.add)
	if m != nil {
		for token := range strings.FieldsSeq(m.sells) {
			t.put(token)
		}
		for token := range strings.FieldsSeq(m.sells) {
			if len(t.b) > t.most {
				break
			}
			if !strings.ContainsFunc(token, private) { // a word
				t.start(formPlain, token)
			}
		}
	}
	t.put(facet(facetListed, ""))
	t.put(facet(facetKind, string(d.Kind)))
	for _, tag := range d.Tags {
		t.put(facet(facetTag, tag))
	}
	for _, c := range d.AllCapabilities(p.Open()) {
		t.put(facet(facetCapability, c.ID))
		for _, tag := range c.Tags {
			t.put(facet(facetCapability, tag))
		}
	}
	for _, l := range d.Languages {
		t.put(facet(facetLanguage, l))
	}
	for _, r := range d.Regions {
		country, _, _ := strings.Cut(r, "-")
		t.put(facet(facetRegion, r))
		t.put(facet(facetRegion, country))
	}
	if p.ERC8004 != "" {
		t.put(facet(facetIdentity, ""))
	} else {
		t.put(facet(facetNobody, ""))
	}
	if m != nil && m.Draft.Category != "" {
		t.put(facet(facetCategory, categoryName(m.Draft.Category)))
	}
	if m != nil && m.Draft.City != "" {
		t.put(facet(facetCity, cityName(m.Draft.City)))
	}
	if m != nil && m.Draft.Geo != nil {
		for _, cell := range cellsOf(*m.Draft.Geo) {
			t.put(cell)
		}
	}
	if d.Returns != nil && d.Returns.AcceptsReturns {
		t.put(facet(facetReturns, ""))
	}
	return string(t.b)
}

// eachField calls field for every searched text of a profile with its class.
func eachField(p *StoredProfile, m *StoredMerchant, field func(class int, s string)) {
	d := &p.Draft
	field(0, d.Name)
	field(0, d.Handle)
	field(1, d.Headline)
	for _, tag := range d.Tags {
		field(1, tag)
	}
	for _, c := range d.AllCapabilities(p.Open()) {
		field(1, c.ID)
		field(1, c.Name)
		field(1, c.Description)
		for _, tag := range c.Tags {
			field(1, tag)
		}
	}
	field(2, d.Description)
	for _, n := range d.Needs {
		field(2, n.Description)
		for _, tag := range n.Tags {
			field(2, tag)
		}
	}
	if m == nil {
		return
	}
	field(2, m.Draft.Category)
	field(2, categoryName(m.Draft.Category))
	field(2, m.Draft.City)
	field(2, cityName(m.Draft.City))
}

// holds reports whether a text of the profile contains the words next to each
// other.
func holds(p *StoredProfile, m *StoredMerchant, phrase []string) (found bool) {
	want := " " + strings.Join(phrase, " ") + " "
	look := func(_ int, s string) {
		found = found || strings.Contains(" "+strings.Join(foldWords(s), " ")+" ", want)
	}
	eachField(p, m, look)
	if m != nil {
		for i := range m.Items { // the first ones
			eachItemField(&m.Items[i].Draft, func(_ int, s string) { look(2, s) })
		}
	}
	return found
}

// foldName is the folded form of a short text by which profiles are grouped: a
// category, a city.
func foldName(s string) string { return strings.Join(foldWords(s), " ") }

// A search is the parsed conditions of a list of profiles.
type search struct {
	facets  []string   // all must match
	words   []string   // words and pairs, all of them, in one place's form
	not     [][]string // no group may match completely
	groups  [][]string // at least one of each group
	any     bool       // one of the words is enough
	phrases [][]string // of three words and more: their pairs are in words
	absent  [][]string // phrases of three words and more that must not occur
	nothing bool       // the query contains no word

	starts bool // the index has beginnings of words (itemword.go)

	spelled map[string][]string // other spellings of words

	near bool   // also matches singular, plural, and words that begin with the last
	last string // the last word, if it is long enough for a prefix search
}

// newSearch parses a q. The error is one of validation.
func newSearch(q string, facets ...string) (search, error) {
	s := search{facets: facets}
	asked, faults := protocol.ParseQuery(q)
	empty := q != ""
	for _, t := range asked.Terms {
		words := foldWords(t.Text)
		switch {
		case len(words) == 0:
			continue
		case t.Not && len(words) > 2:
			s.absent = append(s.absent, words)
		case t.Not:
			s.not = append(s.not, []string{strings.Join(words, pairOf)})
		case t.Phrase && len(words) > 1:
			for i, w := range words[1:] {
				s.words = append(s.words, words[i]+pairOf+w)
			}
			if len(words) > 2 {
				s.phrases = append(s.phrases, words)
			}
		default:
			s.words = append(s.words, words...)
			s.last = words[len(words)-1]
		}
		empty = false
	}
	for _, o := range asked.Tags {
		s.operand(o, facetTag)
		empty = false
	}
	for _, o := range asked.Kinds {
		s.operand(o, facetKind)
		empty = false
	}
	slices.Sort(s.words)
	s.words = slices.Compact(s.words)
	s.nothing = empty
	if len(faults) > 0 {
		return s, protocol.Invalid(faults...)
	}
	return s, nil
}

func (s *search) operand(o protocol.Operand, name string) {
	if f := facet(name, o.Value); o.Not {
		s.not = append(s.not, []string{f})
	} else {
		s.facets = append(s.facets, f)
	}
}

// classes is the number of classes of the search; each is a separate query.
func (s *search) classes() int {
	if len(s.words) == 0 {
		return 1
	}
	return len(forms)
}

// plain reports whether the search has no condition.
func (s *search) plain() bool { return len(s.facets)+len(s.words)+len(s.not)+len(s.groups) == 0 }

// A language is the query syntax of an engine.
type language struct{ quote, and, or, not, begins string }

var (
	fts5    = language{`"`, " AND ", " OR ", " NOT ", " *"}
	tsquery = language{"'", " & ", " | ", " & !", ":*"}
)

// quoted writes tokens as expressions. They contain only letters, marks, digits and
// private-use characters (word.go), so quoting is enough.
func (l language) quoted(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = l.quote + t + l.quote
	}
	return out
}

// write is the query of one class: matches of all words in its place that do not
// match in the place before.
func (s *search) write(l language, class int) string {
	var before []string
	if class > 0 {
		before = s.wordsIn(l, forms[class-1])
	}
	return s.compose(l, s.wordsIn(l, forms[class]), before)
}

// flat is the query of an index with one class.
func (s *search) flat(l language) string {
	here, f := s.wordsIn(l, formPlain), *s
	if len(here)+len(f.facets) == 0 {
		here, f.groups = []string{"(" + strings.Join(l.quoted(f.groups[0]), l.or) + ")"}, f.groups[1:]
	}
	return f.compose(l, here, nil)
}

// compose writes the conditions around the words of one place and of that before.
func (s *search) compose(l language, here, before []string) string {
	must := l.quoted(s.facets)
	var groups, not []string
	for _, group := range s.groups {
		groups = append(groups, strings.Join(l.quoted(group), l.or))
	}
	for _, group := range s.not {
		not = append(not, strings.Join(l.quoted(group), l.and))
	}
	switch {
	case s.any:
		groups = append(groups, strings.Join(here, l.or))
		not = append(not, before...)
	default:
		if len(before) > 0 {
			not = append([]string{strings.Join(before, l.and)}, not...)
		}
		must = append(must, here...)
	}
	if len(must) == 0 {
		must = l.quoted([]string{facet(facetListed, "")})
	}
	query := "(" + strings.Join(must, l.and) + ")"
	for _, group := range groups {
		query = "(" + query + l.and + "(" + group + "))"
	}
	for _, group := range not {
		query = "(" + query + l.not + "(" + group + "))"
	}
	return query
}

// wordsIn are the words of the search in one form, an expression each.
func (s *search) wordsIn(l language, form string) []string {
	out := make([]string, len(s.words))
	for i, w := range s.words {
		if !s.near || strings.Contains(w, pairOf) {
			out[i] = l.quote + form + w + l.quote
			continue
		}
		all := l.quoted(inForm(form, append(siblings(w), s.spelled[w]...)))
		switch {
		case w != s.last || len(w) < shortestStart:
		case s.starts && utf8.RuneCountInString(w) <= longestStart:
			all = append(all, l.quote+form+startOf+w+l.quote)
		default:
			all[0] += l.begins
		}
		out[i] = "(" + strings.Join(all, l.or) + ")"
	}
	return out
}

// shortestStart is the minimum length, in bytes, of a word for a prefix search:
// three letters of ASCII, one or two of other scripts.
const shortestStart = 3

// siblings are a word, and its English singular and plural. It may contain forms
// that are not words: nothing is found by those.
func siblings(w string) []string {
	all := []string{w}
	if len(w) < 3 || !ascii(w) || w[len(w)-1] <= '9' {
		return all
	}
	cut := func(end, other string) {
		if stem, ok := strings.CutSuffix(w, end); ok && len(stem) > 1 {
			all = append(all, stem+other)
		}
	}
	if strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		cut("s", "")
		cut("es", "")
		cut("ies", "y")
		return all
	}
	all = append(all, w+"s")
	switch {
	case strings.HasSuffix(w, "y"):
		cut("y", "ies")
	case slices.ContainsFunc([]string{"s", "x", "z", "ch", "sh", "o"}, func(end string) bool { return strings.HasSuffix(w, end) }):
		all = append(all, w+"es")
	}
	return all
}

func inForm(form string, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = form + w
	}
	return out
}
