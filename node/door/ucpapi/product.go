package ucpapi

import (
	"context"
	"fmt"
	"slices"

	"stoa/protocol"
)

const maxOptions = 20 // of a selection

// A selection is the chosen label of options, by the option's name.
type selection []protocol.SelectedOption

func (s selection) label(name string) (label string, ok bool) {
	for _, o := range s {
		if o.Name == name {
			return o.Label, true
		}
	}
	return "", false
}

// fits reports whether a variant has every selected label.
func (s selection) fits(v variant) bool {
	return !slices.ContainsFunc(s, func(o protocol.SelectedOption) bool { return !slices.Contains(v.Options, o) })
}

// with returns the selection with another label for one option.
func (s selection) with(name, label string) selection {
	out := slices.DeleteFunc(slices.Clone(s), func(o protocol.SelectedOption) bool { return o.Name == name })
	return append(out, protocol.SelectedOption{Name: name, Label: label})
}

// getProduct is get_product.
func getProduct(ctx context.Context, x *exchange, in *object) (any, error) {
	id := in.text("id", 200)
	f := x.readFilters(in)
	asked := readSelection(in)
	preferences := in.texts("preferences", maxOptions, 240)
	if *in.fault == nil && id == "" {
		in.wrong("id", "give the id of a product or variant")
	}
	if *in.fault != nil {
		return nil, *in.fault
	}
	found, err := x.byIDs(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	missing := x.failed("not_found", "no product on sale has this id: "+protocol.CleanText(id))
	if len(found) == 0 {
		return missing, nil
	}
	p, ok := x.productOf(found[0])
	if !ok || f.merchants != nil && !slices.Contains(f.merchants, found[0].Merchant.Handle) {
		return missing, nil
	}
	var chosen selection
	first := p.Variants[0].ID
	if i := slices.IndexFunc(p.Variants, func(v variant) bool { return v.ID == id }); i >= 0 {
		// The id of a variant determines the selection.
		first, chosen = id, p.Variants[i].Options
	} else if id != p.ID {
		return missing, nil
	} else if asked != nil {
		chosen = relax(p, asked, preferences)
	} else {
		chosen = p.Variants[0].Options
	}
	p.signal(chosen)
	if len(p.Options) > 0 {
		p.Selected = append([]protocol.SelectedOption{}, chosen...)
	}
	prices, lists := p.Prices, p.ListPrices
	p.narrow(chosen.fits)
	if !p.narrow(f.passes) || len(f.categories) > 0 && !f.admits(&p, found[0].Merchant.Handle) {
		return x.failed("not_found", "no variant of "+protocol.CleanText(id)+" passes the filters"), nil
	}
	p.Prices, p.ListPrices = prices, lists
	slices.SortStableFunc(p.Variants, func(a, b variant) int {
		if a.ID == first || b.ID == first {
			return map[bool]int{true: -1, false: 1}[a.ID == first]
		}
		return 0
	})
	return oneProduct{UCP: x.meta(), Product: p, Messages: f.messages, Untrusted: true,
		Policies: x.policiesOf(found[:1], func(int) string { return "$.product" })}, nil
}

// readSelection reads the member selected, nil when there is none.
func readSelection(in *object) selection {
	var s selection
	for i, o := range in.objects("selected", maxOptions) {
		one := protocol.SelectedOption{Name: o.text("name", 240), Label: o.text("label", 240)}
		if _, twice := s.label(one.Name); twice {
			in.wrong("selected", fmt.Sprintf("the option of element %d is named twice", i))
		}
		s = append(s, one)
	}
	return s
}

// relax drops selections until a variant fits: unknown ones first, then those of the preferences from
// the end, then the others from the end.
func relax(p productItem, asked selection, preferences []string) selection {
	fits := func(s selection) bool { return slices.ContainsFunc(p.Variants, s.fits) }
	kept := slices.DeleteFunc(slices.Clone(asked), func(o protocol.SelectedOption) bool {
		return !slices.ContainsFunc(p.Variants, func(v variant) bool { return slices.Contains(v.Options, o) })
	})
	drop := func(name string) {
		kept = slices.DeleteFunc(kept, func(o protocol.SelectedOption) bool { return o.Name == name })
	}
	for _, name := range slices.Backward(preferences) {
		if fits(kept) {
			return kept
		}
		drop(name)
	}
	for !fits(kept) {
		drop(kept[len(kept)-1].Name)
	}
	return kept
}

// signal says of each value of an option whether a variant with it exists and is available, next to
// the other selections.
func (p *productItem) signal(chosen selection) {
	for i := range p.Options {
		o := &p.Options[i]
		for j := range o.Values {
			v := &o.Values[j]
			with := chosen.with(o.Name, v.Label)
			exists, available := false, false
			for _, one := range p.Variants {
				if with.fits(one) {
					exists, available = true, available || one.Availability.Available
				}
			}
			v.Exists, v.Available = &exists, &available
		}
	}
}
