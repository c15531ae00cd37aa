package ucpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/protocol"
)

// Filters that this software adds.
const (
	filterMerchant     = protocol.UCPPrefix + ".merchant"     // handles
	filterAvailability = protocol.UCPPrefix + ".availability" // values of UCP
)

// Sizes of pages (UCP 2026-08-25, Pagination).
const (
	defaultLimit = 10
	maxLimit     = protocol.MaxLimit
)

// filters are the conditions of a request on products and variants.
type filters struct {
	merchants    []string // handles; nil for any
	categories   []string
	availability []protocol.Availability
	priced       bool
	currency     string // of the prices
	min, max     int64  // in minor units
	bounded      bool   // max is given
	any          bool   // there is one
	messages     []message
}

// readFilters reads context and filters.
func (x *exchange) readFilters(in *object) filters {
	f := filters{currency: in.object("context").text("currency", 3)}
	if x.merchant != "" {
		f.merchants = []string{x.merchant}
	}
	o := in.object("filters")
	if o == nil {
		f.any = f.merchants != nil
		return f
	}
	for name := range o.members {
		switch name {
		case "categories", "price", filterMerchant, filterAvailability:
		default:
			f.messages = append(f.messages, unknownFilter(name))
		}
	}
	slices.SortFunc(f.messages, func(a, b message) int { return strings.Compare(a.Content, b.Content) })
	f.messages = f.messages[:min(len(f.messages), 10)]
	f.categories = o.texts("categories", 20, 240)
	if _, sent := o.get(filterMerchant); sent {
		var handles []string
		for _, h := range o.texts(filterMerchant, 20, 64) {
			handles = append(handles, protocol.CleanHandle(h))
		}
		if f.merchants != nil { // both must hold
			handles = slices.DeleteFunc(handles, func(h string) bool { return h != x.merchant })
		}
		f.merchants = append([]string{}, handles...)
	}
	for _, a := range o.texts(filterAvailability, 5, 20) {
		if !slices.Contains(protocol.Availabilities, protocol.Availability(a)) {
			o.wrong(filterAvailability, "must be some of in_stock, backorder, preorder, out_of_stock, discontinued")
		}
		f.availability = append(f.availability, protocol.Availability(a))
	}
	f.readPrice(o.object("price"))
	f.any = f.merchants != nil || len(f.categories)+len(f.availability) > 0 || f.priced || len(f.messages) > 0
	return f
}

// unknownFilter says that a filter was ignored.
func unknownFilter(name string) message {
	return info("filter_ignored", "$.filters", "there is no filter "+protocol.CleanText(protocol.Clip(name, 64))+" here; it was ignored")
}

// readPrice reads the range of prices. Without a currency it would be ambiguous, and is ignored.
func (f *filters) readPrice(o *object) {
	if o == nil {
		return
	}
	var low, high bool
	f.min, low = o.integer("min", 0, 1<<53-1)
	f.max, high = o.integer("max", 0, 1<<53-1)
	if !low && !high {
		return
	}
	f.bounded, f.priced = high, true
	f.min, f.max = min(f.min, protocol.MaxMinor), min(f.max, protocol.MaxMinor)
	if !protocol.IsCurrency(f.currency) {
		f.priced = false
		f.messages = append(f.messages, info("filter_ignored", "$.filters.price", "the price filter was ignored: give its currency in context.currency, such as INR"))
	}
}

// passes reports whether a variant meets the filters on variants.
func (f *filters) passes(v variant) bool {
	if len(f.availability) > 0 && !slices.Contains(f.availability, v.Availability.Status) {
		return false
	}
	return !f.priced || v.Price.Currency == f.currency && v.Price.Amount >= f.min && (!f.bounded || v.Price.Amount <= f.max)
}

// admits reports whether an item meets all filters in itself, and narrows the product to the variants
// that do.
func (f *filters) admits(p *productItem, merchant string) bool {
	if f.merchants != nil && !slices.Contains(f.merchants, merchant) {
		return false
	}
	if len(f.categories) > 0 && !slices.ContainsFunc(p.Categories, func(c category) bool {
		return slices.ContainsFunc(f.categories, func(want string) bool { return strings.EqualFold(want, c.Value) })
	}) {
		return false
	}
	return p.narrow(f.passes)
}

// searchCatalog is search_catalog.
func searchCatalog(ctx context.Context, x *exchange, in *object) (any, error) {
	query := in.text("query", 800)
	f := x.readFilters(in)
	page := in.object("pagination")
	limit, sent := page.integer("limit", 1, 1<<31)
	if !sent {
		limit = defaultLimit
	}
	ask := protocol.UCPItemQuery{Q: firstRunes(query, 200), Merchants: f.merchants, Categories: f.categories, Availability: f.availability,
		Paging: protocol.Paging{Limit: int(min(limit, maxLimit)), After: page.text("cursor", 400)}}
	if *in.fault != nil {
		return nil, *in.fault
	}
	if strings.TrimSpace(query) == "" && !f.any && !in.browse {
		return nil, badRequest("send a query, or at least one filter")
	}
	out := products{UCP: x.meta(), Products: []productItem{}, Pagination: &pagination{}, Messages: f.messages, Untrusted: true}
	if f.merchants != nil && len(f.merchants) == 0 {
		return out, nil
	}
	if f.priced {
		ask.Currency, ask.Min = f.currency, &f.min
		if f.bounded {
			ask.Max = &f.max
		}
	}
	found, err := invoke(ctx, x, protocol.UCPItems, ask)
	if err != nil {
		return nil, err
	}
	var shown []protocol.FoundItem
	for _, item := range found.Items {
		if p, ok := x.productOf(item); ok {
			shown, out.Products = append(shown, item), append(out.Products, p)
		}
	}
	out.Pagination, out.Messages = pageOf(found.Next), append(out.Messages, findings(found.Finding)...)
	out.Policies = x.policiesOf(shown, func(i int) string { return fmt.Sprintf("$.products[%d]", i) })
	return out, nil
}

// lookupCatalog is lookup_catalog.
func lookupCatalog(ctx context.Context, x *exchange, in *object) (any, error) {
	if len(in.list("ids")) > protocol.MaxLookup {
		return nil, tooLarge(fmt.Sprintf("at most %d ids in one lookup", protocol.MaxLookup))
	}
	ids := distinct(in.texts("ids", protocol.MaxLookup, 200))
	f := x.readFilters(in)
	if *in.fault == nil && len(ids) == 0 {
		in.wrong("ids", "give at least one id of a product or variant")
	}
	if *in.fault != nil {
		return nil, *in.fault
	}
	found, err := x.byIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := products{UCP: x.meta(), Products: []productItem{}, Messages: f.messages, Untrusted: true}
	var shown []protocol.FoundItem
	known := map[string]bool{}
	for _, item := range found {
		p, ok := x.productOf(item)
		if !ok {
			continue
		}
		featured := p.Variants[0].ID
		for _, v := range p.Variants {
			known[v.ID] = true
		}
		known[p.ID] = true
		whole := p.Variants
		if !f.admits(&p, item.Merchant.Handle) {
			continue
		}
		if !slices.ContainsFunc(p.Variants, func(v variant) bool { return v.ID == featured }) {
			featured = p.Variants[0].ID
		}
		for i := range p.Variants {
			v := &p.Variants[i]
			for _, id := range ids {
				switch {
				case id == v.ID:
					v.Inputs = append(v.Inputs, input{id, "exact"})
				case id == p.ID && v.ID == featured:
					v.Inputs = append(v.Inputs, input{id, "featured"})
				}
			}
		}
		prices, lists := p.Prices, p.ListPrices
		if p.narrow(func(v variant) bool { return len(v.Inputs) > 0 }) {
			if len(whole) > len(p.Variants) { // the range is that of the product
				p.Prices, p.ListPrices = prices, lists
			}
			shown, out.Products = append(shown, item), append(out.Products, p)
		}
	}
	for _, id := range ids {
		if !known[id] {
			out.Messages = append(out.Messages, info("not_found", "", protocol.CleanText(id)))
		}
	}
	out.Policies = x.policiesOf(shown, func(i int) string { return fmt.Sprintf("$.products[%d]", i) })
	return out, nil
}

// byIDs reads the items of ids that have the form of one.
func (x *exchange) byIDs(ctx context.Context, ids []string) ([]protocol.FoundItem, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return !protocol.IsID(protocol.ItemID, id) && !protocol.IsID(protocol.VariantID, id)
	})
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := invoke(ctx, x, protocol.UCPItems, protocol.UCPItemQuery{IDs: ids})
	return found.Items, err
}

func distinct(list []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}

func firstRunes(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:i]
		}
	}
	return s
}
