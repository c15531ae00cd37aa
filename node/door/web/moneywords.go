package web

import (
	"context"
	"regexp"
	"strings"

	"github.com/a-h/templ"
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
