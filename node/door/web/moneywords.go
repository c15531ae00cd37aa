package web

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// What people write among the words of a search and mean as a filter: "under 500", "₹200 तक", "open now". It becomes one,
// is shown as such, and has a link that removes it.

const (
	rupeeSign  = `(?:₹|rs\.?|inr|रु\.?)?\s*`
	sumOfMoney = `(\d[\d,]*(?:\.\d{1,2})?)(?:\s*(?:₹|rs\.?|inr|rupees?|rupaye|रुपये|रुपए|रु\.?|/-))?`
	mostAfter  = `(?:\s+(?:तक|से\s+कम|के\s+अंदर|tak|se\s+kam))`
	overAfter  = `(?:\s+(?:से\s+(?:ज़्यादा|ज्यादा|अधिक|ऊपर)|se\s+(?:zyada|jyada|upar)))`
	wordStart  = `(?i)(?:^|\s)`
	wordEnd    = `(?:\s|$)`
)

// meantFilters are the patterns of filters: their first group is an amount.
var meantFilters = []struct {
	field   string
	pattern *regexp.Regexp
}{
	{"maxPrice", regexp.MustCompile(wordStart + `(?:under|below|less\s+than|up\s*to|not\s+more\s+than)\s+` + rupeeSign + sumOfMoney + wordEnd)},
	{"maxPrice", regexp.MustCompile(wordStart + rupeeSign + sumOfMoney + mostAfter + wordEnd)},
	{"minPrice", regexp.MustCompile(wordStart + `(?:over|above|more\s+than|at\s+least)\s+` + rupeeSign + sumOfMoney + wordEnd)},
	{"minPrice", regexp.MustCompile(wordStart + rupeeSign + sumOfMoney + overAfter + wordEnd)},
	{"openNow", regexp.MustCompile(wordStart + `(?:open\s+now|abhi\s+khul[aei]|अभी\s+खुल[ाीे])` + wordEnd)},
}

// takeFilters moves filters from the words of a search into the fields of the form that are empty.
func (f *form) takeFilters() {
	q := f.get("q")
	for _, m := range meantFilters {
		at := m.pattern.FindStringSubmatchIndex(q)
		if at == nil || f.get(m.field) != "" {
			continue
		}
		value := "true"
		if len(at) > 2 {
			value = strings.ReplaceAll(q[at[2]:at[3]], ",", "")
		}
		q = strings.TrimSpace(q[:at[0]] + " " + q[at[1]:])
		f.set(m.field, value)
		f.taken = append(f.taken, m.field)
	}
	if len(f.taken) > 0 {
		f.set("q", q)
	}
}

// set changes a field.
func (f *form) set(name, value string) {
	f.values.Del(name)
	delete(f.args, name)
	switch {
	case value == "":
	case name == "openNow":
		f.values.Set(name, value)
		f.args[name] = true
	default:
		f.values.Set(name, value)
		f.args[name] = value
	}
}

// orders are the orders of a list to choose from.
func orders(ctx context.Context, more ...string) [][2]string {
	all := [][2]string{{"", tr(ctx, "Best match##order of a list")}, {"new", tr(ctx, "Newest##order of a list")}}
	for _, name := range more {
		all = append(all, [2]string{name, tr(ctx, "Nearest##order of a list")})
	}
	return all
}

// morePosts names the next page of the board.
func morePosts(ctx context.Context, f *form) string {
	if f.get("q") == "" || f.get("sort") == string(protocol.SortNew) {
		return tr(ctx, "Older posts")
	}
	return tr(ctx, "More posts")
}

// filterNames are the labels of filters.
var filterNames = map[string]string{
	"category": english("Category"), "city": english("City"), "near": english("Near"), "minPrice": english("Price from"), "maxPrice": english("Price up to"),
	"acceptsReturns": english("Accepts returns"), "openNow": english("Open now"), "kind": english("Kind"), "tag": english("Tag"),
	"capability": english("Capability"), "region": english("Region"), "hasIdentity": english("Chain identity"), "author": english("Author"),
	"verifiedOnly": english("Verified authors only"), "resolved": english("Requests"),
}

// findings show what a search did beyond the question, and what could be left out where it found nothing.
func findings(ctx context.Context, f *form, path string) templ.Component {
	list := all{takenFilters(ctx, f, path)}
	if meant := f.found.DidYouMean; meant != "" {
		list = append(list, sayIn(`p class="meta"`, "Did you mean %s?", linkText(`rel="nofollow" lang=""`, f.to(path, "q", meant), meant)))
	}
	var drop all
	for _, name := range f.found.Without {
		if label := filterNames[name]; label != "" {
			drop = append(drop, linkText(`class="button" rel="nofollow"`, f.to(path, name, ""), tr(ctx, label)+" ✕"), space)
		} else {
			drop = append(drop, linkText(`class="button" rel="nofollow" lang=""`, f.to(path, "q", leaveOut(f.get("q"), name)), name+" ✕"), space)
		}
	}
	if f.found.Partly {
		list = append(list, para("Nothing has all words; these have most."))
	}
	if len(drop) > 0 {
		list = append(list, inside(`p class="meta"`, append(all{spanned("Leave out:##words of a search")}, drop...)...))
	}
	return list
}

// leaveOut removes a word from a text.
func leaveOut(q, word string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(q), func(w string) bool {
		return strings.EqualFold(strings.Trim(w, `"'.,;:!?()`), word)
	}), " ")
}

// takenFilters shows the filters that were among the words, each with a link that removes it.
func takenFilters(ctx context.Context, f *form, path string) templ.Component {
	var list all
	for _, name := range f.taken {
		text := tr(ctx, "Open now")
		switch name {
		case "maxPrice":
			text = tr(ctx, "up to ₹%s", f.get(name))
		case "minPrice":
			text = tr(ctx, "₹%s and more", f.get(name))
		}
		list = append(list, linkText(`class="button" rel="nofollow"`, f.to(path, name, ""), text+" ✕"), space)
	}
	return when(len(list) > 0, inside(`p class="meta"`, list...))
}
