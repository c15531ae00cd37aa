// Package words has the texts of the pages in every language that they are written in. The English
// text is the key: Text("%d replies", 2). A catalogue, one JSON file for each language, has the
// texts of the other languages, and English plurals. A key may end in a note for translators, after
// "##", which tells apart texts that are equal in English: "Open##of a shop". Plurals follow CLDR
// (UTS #35 part 3 §5.1), numbers have lakh digits. What people wrote is never translated.
package words

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"stoa/identity/cache"
	"stoa/protocol"
)

// A Language is one in which the pages can be shown. It is safe for concurrent use.
type Language struct {
	Code    string // BCP 47, as in the attribute lang
	Name    string // in the language itself
	Tag     language.Tag
	texts   map[string]string // those that are used as they are
	printer *message.Printer  // those with arguments
	ofRooms func() []pattern
	wrap    func(string) string
}

// Text returns a text in the language; in English when it has none. Verbs are those of fmt, and are
// formatted only when there are arguments.
func (l *Language) Text(key string, args ...any) string {
	english, _, _ := strings.Cut(key, "##")
	text := english
	if len(args) > 0 {
		text = l.printer.Sprintf(message.Key(key, english), args...)
	} else if own, ok := l.texts[key]; ok {
		text = own
	}
	if l.wrap != nil {
		return l.wrap(text)
	}
	return text
}

// OfLanguage returns the name of a language: English, Brazilian Portuguese; "" when it has none.
func (l *Language) OfLanguage(tag language.Tag) string {
	return l.named(protocol.LanguageName(tag.String(), l.Code))
}

// OfRegion returns the name of a country; "" when it has none.
func (l *Language) OfRegion(r language.Region) string {
	return l.named(protocol.CountryName(r.String(), l.Code))
}

func (l *Language) named(name string) string {
	if name != "" && l.wrap != nil {
		return l.wrap(name)
	}
	return name
}

// Has reports whether the language has a text of its own for the key; English has all.
func (l *Language) Has(key string) bool {
	_, ok := l.texts[key]
	return ok || l.Tag == English().Tag
}

// OfRoom returns a refusal or a reason, as a room writes it, in the language; "" when it has none.
func (l *Language) OfRoom(text string) string {
	if l.Has(text) {
		return l.Text(text)
	}
	for _, p := range l.ofRooms() {
		found := p.is.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var args []any
		for _, x := range found[1:] {
			if n, err := strconv.Atoi(x); p.int && err == nil {
				args = append(args, n)
			} else {
				args = append(args, x)
			}
		}
		return l.Text(p.key, args...)
	}
	return ""
}

// A pattern is a text of the rooms, as an expression for what has its arguments.
type pattern struct {
	key string
	is  *regexp.Regexp
	int bool // its arguments are whole numbers
}

func patternsOf(rooms map[string]Entry) (all []pattern) {
	for _, key := range slices.Sorted(maps.Keys(rooms)) {
		if strings.Contains(key, "%") {
			form := strings.NewReplacer("%d", `(\d+)`, "%s", "(.+)").Replace(regexp.QuoteMeta(key))
			all = append(all, pattern{key, regexp.MustCompile("^" + form + "$"), strings.Contains(key, "%d")})
		}
	}
	return all
}

// names are the parts of a layout of time.Format that have words, longer ones first, and the texts
// that they are replaced by.
var names = []struct {
	layout string
	of     func(t time.Time) string
}{
	{"January", func(t time.Time) string { return t.Month().String() }},
	{"Monday", func(t time.Time) string { return t.Weekday().String() }},
	{"Jan", func(t time.Time) string { return t.Format("Jan") + "##month" }},
	{"Mon", func(t time.Time) string { return t.Format("Mon") + "##day" }},
}

// Time formats a time by a layout of time.Format, with the names of months and days in the language.
func (l *Language) Time(t time.Time, layout string) string {
	var fill []string
	for i, n := range names {
		mark := string(rune('\x01' + i))
		if strings.Contains(layout, n.layout) {
			layout = strings.ReplaceAll(layout, n.layout, mark)
			name := n.of(t)
			english, _, _ := strings.Cut(name, "##")
			if own, ok := l.texts[name]; ok {
				english = own
			}
			fill = append(fill, mark, english)
		}
	}
	text := strings.NewReplacer(fill...).Replace(t.Format(layout))
	if l.wrap != nil {
		return l.wrap(text)
	}
	return text
}

type contextKey struct{}

// With returns a context in which texts are in the language.
func With(ctx context.Context, l *Language) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// Of returns the language of a context: English when nothing chose one.
func Of(ctx context.Context) *Language {
	if l, ok := ctx.Value(contextKey{}).(*Language); ok {
		return l
	}
	return English()
}

// A Set are the languages from which readers choose. The first is for readers who understand none.
type Set struct {
	Languages []*Language
	matcher   language.Matcher
	matched   *cache.Cache[*Language] // by Accept-Language
}

// NewSet returns a set of languages.
func NewSet(languages ...*Language) *Set {
	var tags []language.Tag
	for _, l := range languages {
		tags = append(tags, l.Tag)
	}
	return &Set{languages, language.NewMatcher(tags), cache.Of[*Language](1000)}
}

// CookieName is the name of the cookie that keeps the reader's choice.
const CookieName = "stoa_language"

const (
	maxAccept = 256            // longest part of Accept-Language that is read, in bytes
	memory    = 24 * time.Hour // how long it is known what such a field means
)

// Choose returns the language of a reader: by the cookie of the switch, otherwise by Accept-Language
// (RFC 9110 §12.5.4, RFC 4647 §3.4 with the distances of CLDR).
func (s *Set) Choose(r *http.Request) *Language {
	if r.Header["Cookie"] != nil && strings.Contains(strings.Join(r.Header["Cookie"], ";"), CookieName) {
		if c, err := r.Cookie(CookieName); err == nil {
			if l := s.Find(c.Value); l != nil {
				return l
			}
		}
	}
	fields := r.Header["Accept-Language"]
	if len(fields) == 0 || len(s.Languages) == 1 {
		return s.Languages[0]
	}
	accept := strings.Join(fields, ",")
	if len(accept) > maxAccept {
		accept = accept[:strings.LastIndexByte(accept[:maxAccept], ',')+1]
	}
	now := time.Now()
	if l, ok := s.matched.Get(accept, now); ok {
		return l
	}
	l := s.match(accept)
	s.matched.Put(accept, l, len(accept), now.Add(memory))
	return l
}

func (s *Set) match(accept string) *Language {
	wanted, _, err := language.ParseAcceptLanguage(strings.TrimSuffix(accept, ","))
	if err != nil {
		return s.Languages[0]
	}
	_, i, _ := s.matcher.Match(wanted...)
	return s.Languages[i]
}

// Find returns the language with a code, nil when there is none.
func (s *Set) Find(code string) *Language {
	for _, l := range s.Languages {
		if l.Code == code {
			return l
		}
	}
	return nil
}
