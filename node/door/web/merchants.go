package web

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// searchHint explains the syntax of a search field.
var searchHint = english(`Words to find: all of them; also "words in a row", tag:paper, and a minus before what to leave out.`)

func (s *Web) merchants(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ListMerchants.Operation)
	if err != nil {
		return view{}, err
	}
	f.takeFilters()
	found, err := list(s, r, protocol.ListMerchants, f)
	if err != nil {
		return view{}, err
	}
	known, err := s.InUse(r.Context())
	if err != nil {
		return view{}, err
	}
	f.found = found.Finding
	next := f.next("/merchants", found.Next)
	parts := make([]thing, len(found.Items))
	for i, e := range found.Items {
		parts[i] = entryData(e.Page, e.Name, e.Headline)
	}
	title := tr(r.Context(), "Shops")
	return view{
		Title: title, Linked: s.collection("/merchants", title, parts),
		Description: tr(r.Context(), "Businesses: what they sell, where they are, and whether they are open now."),
		Near:        true, Next: next, Refused: f.err, Stray: f.otherFaults("q", "category", "city", "near", "radius", "minPrice", "maxPrice", "sort"), Data: found,
		Body: merchantsPage(f, known, found.Items, next),
	}, nil
}

// facts are what a buyer wants to know first of a business: open until when, how far away, at what prices, and what others
// say.
func facts(ctx context.Context, m protocol.MerchantEntry) templ.Component {
	var list all
	if m.OpenNow != nil {
		zone := "Asia/Kolkata"
		list = append(list, doors(*m.OpenNow), space, in("span", nextChange(ctx, protocol.Merchant{Timezone: &zone, Openness: m.Openness})), space)
	}
	if m.Distance != nil {
		list = append(list, spanned("%s away##a distance", distance(ctx, *m.Distance)))
	}
	if p := m.PriceRange; p != nil {
		text := rupees(p.Min)
		if p.Max != p.Min {
			text += "–" + rupees(p.Max)
		}
		list = append(list, in(`span class="price"`, text), space)
	}
	if m.Reputation != nil {
		list = append(list, in("span", rating(ctx, *m.Reputation)))
	}
	return when(len(list) > 0, inside(`p class="meta"`, list...))
}

// radii are the distances to choose from, with the chosen one.
func radii(ctx context.Context, chosen string) [][2]string {
	metres := []int{1000, 2000, 5000, 10_000, 25_000, 50_000, 100_000}
	if n, err := strconv.Atoi(chosen); err == nil && n > 0 && !slices.Contains(metres, n) {
		metres = append(metres, n)
		slices.Sort(metres)
	}
	var all [][2]string
	for _, n := range metres {
		value := strconv.Itoa(n)
		if value == "5000" && chosen == "" { // when none is given
			value = ""
		}
		all = append(all, [2]string{value, distance(ctx, n)})
	}
	return all
}

// distance writes metres for people.
func distance(ctx context.Context, metres int) string {
	if metres < 1000 {
		return tr(ctx, "%s m", strconv.Itoa(metres))
	}
	km, shown := float64(metres)/1000, 10.0
	if km >= 10 {
		shown = 1
	}
	return tr(ctx, "%s km", strconv.FormatFloat(math.Round(km*shown)/shown, 'f', -1, 64))
}
