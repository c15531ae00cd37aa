package storage

import (
	"slices"
	"strings"

	"stoa/protocol"
)

// The tokens of a profile in the directory's index. A word is indexed plainly and, if it
// occurs in a better place, also in that place's form, so that each place can be
// searched by itself:
//
//	name  name and handle
//	head  headline, tags, capabilities, and category and city of a merchant
//	plain these, description, needs, and what a merchant sells (itemword.go)
//
// A word is there as it is and by its keys (spell.go); two adjacent words are one token, so that phrases are found without
// positions, and one word too where they are in a name or a head. The words of a business are
// indexed with their beginnings, so that a search for one reads a single list. The index also
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

	keys    bool // add adds the keys of words
	begins  bool // and their beginnings
	written map[string]int8
	terms   []string // words that are counted
}

// maxTerms is how many words of a profile are counted.
const maxTerms = 400

func (t *text) put(token string) {
	if !t.seen[token] {
		t.seen[token] = true
		t.b = append(append(t.b, token...), ' ')
	}
}

// add adds the words and pairs of s plainly and in the form of the given class.
func (t *text) add(class int, s string) {
	before := ""
	for _, w := range foldWords(s) {
		if len(t.b) > t.most {
			return
		}
		t.word(class, w)
		if before != "" {
			t.in(class, before+pairOf+w)
			if t.keys && class < 2 {
				t.put(keyOf(before + w))
			}
		}
		before = w
	}
}

// in adds a token plainly and in the form of a class.
func (t *text) in(class int, token string) {
	if t.put(token); class < 2 {
		t.put(forms[class] + token)
	}
}

// spell adds the keys of the words of s, plainly and in the form of the given class.
func (t *text) spell(class int, s string) {
	before := ""
	for _, w := range foldWords(s) {
		if done, _ := t.first(class, w); !done {
			for _, k := range keysOf(w) {
				t.in(class, k)
			}
		}
		if class == 0 && before != "" {
			t.put(keyOf(before + w))
		}
		before = w
	}
}

// first notes that a word is in a class; done is true when it was in as good a one before, known when it was in any.
func (t *text) first(class int, w string) (done, known bool) {
	was, known := t.written[w]
	if known && int(was) <= class {
		return true, true
	}
	if t.written == nil {
		t.written = make(map[string]int8, 32)
	}
	t.written[w] = int8(class)
	return false, known
}

// word adds a word, once for each better class.
func (t *text) word(class int, w string) {
	done, known := t.first(class, w)
	if done {
		return
	}
	if t.in(class, w); !t.keys {
		return
	}
	if !known && isTerm(w) && len(t.terms) < maxTerms {
		t.terms = append(t.terms, w)
	}
	for _, k := range keysOf(w) {
		t.in(class, k)
	}
	if t.begins {
		t.start(w)
	}
}

// private reports whether a character marks a token that is no word.
func private(r rune) bool { return r >= 0xe000 && r <= 0xf8ff }

func foldWords(s string) []string { return strings.Fields(string(fold(nil, s))) }

// profileText is the text of a listed profile, and the words of it that are counted, in order; m may be nil.
func profileText(p *StoredProfile, m *StoredMerchant) (words, terms string) {
	d := &p.Draft
	t := &text{seen: map[string]bool{}, most: maxText, keys: true, begins: d.Kind == protocol.Business}
	eachField(p, m, t.add)
	slices.Sort(t.terms)
	terms = strings.Join(t.terms, " ")
	if m != nil {
		for token := range strings.FieldsSeq(m.sells) {
			switch {
			case strings.ContainsFunc(token, private), len(t.b) > t.most: // no word, or known as it is
				t.put(token)
			default:
				t.word(2, token)
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
	return string(t.b), terms
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
	for _, name := range categoryNames(m.Draft.Category) {
		field(1, name)
	}
	for _, name := range cityNames(m.Draft.City) {
		field(1, name)
	}
}

// fields are the searched texts of a profile, its name first.
func (p *ListedProfile) fields() []field {
	all := []field{newField(weightName, p.Draft.Name), {weight: weightTag}, {weight: weightPlain}, newField(weightName, p.Draft.Handle)}
	eachField(&p.StoredProfile, p.Merchant, func(class int, s string) {
		if class > 0 {
			all[class].words = append(all[class].words, foldWords(s)...)
		}
	})
	return all
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
	words   []string   // all of them, in one place's form
	not     [][]string // no group may match completely
	groups  [][]string // at least one of each group
	any     bool       // one of the words is enough
	also    condition  // nil: none
	phrases [][]string // of three words and more
	absent  [][]string // phrases of three words and more that must not occur
	nothing bool       // the query contains no word
}

// newSearch parses a q: the terms are found in any spelling, or by relevance (found.go), the rest is in the search. The last word may be the beginning of
// one if begins is true. The error is one of validation.
func newSearch(q string, begins bool, facets ...string) (s search, terms []*term, err error) {
	s.facets = facets
	asked, faults := protocol.ParseQuery(q)
	empty := q != ""
	var all []string
	last := ""
	for _, t := range asked.Terms {
		words := foldWords(t.Text)
		switch {
		case len(words) == 0:
			continue
		case t.Not && len(words) > 2:
			s.absent = append(s.absent, words)
		case t.Not:
			s.not = append(s.not, []string{strings.Join(words, pairOf)})
		case t.Phrase && len(words) == 1:
			terms = append(terms, &term{word: words[0], key: keyOf(words[0]), exact: true, weight: usualTerm})
		case t.Phrase:
			if terms = append(terms, &term{phrase: words, weight: usualTerm}); len(words) > 2 {
				s.phrases = append(s.phrases, words)
			}
		default:
			all = append(all, words...)
			last = words[len(words)-1]
		}
		empty = false
	}
	plain := termsOf(all, false)
	for _, t := range plain {
		t.last = begins && t.word == last && len(last) >= shortestStart
	}
	terms = append(plain, terms...)
	for _, o := range asked.Tags {
		s.operand(o, facetTag)
		empty = false
	}
	for _, o := range asked.Kinds {
		s.operand(o, facetKind)
		empty = false
	}
	s.nothing = empty
	if len(faults) > 0 {
		return s, nil, protocol.Invalid(faults...)
	}
	return s, terms, nil
}

// with adds a condition.
func (s search) with(c condition) *search {
	s.also = c
	return &s
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
func (s *search) plain() bool {
	return len(s.facets)+len(s.words)+len(s.not)+len(s.groups) == 0 && s.also == nil
}

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
	if len(here)+len(f.facets) == 0 && f.also == nil && len(f.groups) > 0 {
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
	if s.also != nil {
		must = append(must, s.also(l))
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
		out[i] = (&term{word: w, exact: true}).in(form)(l)
	}
	return out
}

// shortestStart is the minimum length, in bytes, of the beginning of a word:
// three letters of ASCII, one or two of other scripts.
const shortestStart = 3
