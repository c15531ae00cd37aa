package ucpapi

import (
	"slices"
	"strings"

	"stoa/protocol"
)

// productOf converts an item to a product. It is false for one without a price: UCP has no product
// without.
func (x *exchange) productOf(f protocol.FoundItem) (p productItem, ok bool) {
	p = productItem{
		ID: f.ID, Title: f.Name, Description: plain(f.Description, f.Name), URL: f.Merchant.Page + "#" + f.ID, Tags: f.Tags,
		Metadata: map[string]any{"merchant": map[string]string{"handle": f.Merchant.Handle, "profile": f.Merchant.Profile}},
	}
	if f.URL != nil {
		p.Metadata["page"] = *f.URL
	}
	if f.Unit != nil {
		p.Metadata["unit"] = *f.Unit
	}
	for _, c := range f.Categories {
		p.Categories = append(p.Categories, category{c, "merchant"})
	}
	for _, m := range f.Media {
		p.Media = append(p.Media, media{m.Type, m.URL, m.Alt})
	}
	for _, o := range f.Options {
		values := make([]optionValue, len(o.Values))
		for i, v := range o.Values {
			values[i].Label = v
		}
		p.Options = append(p.Options, option{o.Name, values})
	}
	sold := x.sellerOf(f.Merchant)
	for _, v := range f.Variants {
		if v.Price == nil {
			continue
		}
		out := variant{
			ID: v.ID, SKU: v.SKU, Title: v.Title, Description: p.Description, Price: minor(*v.Price), Options: v.Options, Seller: sold,
			Availability: availability{v.Availability != protocol.OutOfStock && v.Availability != protocol.Discontinued, v.Availability},
		}
		if v.Barcode != "" {
			out.Barcodes = []barcode{{barcodeType(v.Barcode), v.Barcode}}
		}
		if v.ListPrice != nil {
			out.ListPrice = new(minor(*v.ListPrice))
		}
		if u := v.UnitPrice; u != nil {
			out.UnitPrice = &unitPrice{minor(u.Money), measureOf(u.Measure), measureOf(u.Reference)}
		}
		p.Variants = append(p.Variants, out)
	}
	if len(p.Variants) == 0 {
		return p, false
	}
	p.setPrices()
	return p, true
}

// setPrices computes the ranges over the variants.
func (p *productItem) setPrices() {
	first := p.Variants[0].Price
	p.Prices, p.ListPrices = priceRange{first, first}, nil
	listed := false
	list := priceRange{first, first}
	for i, v := range p.Variants {
		p.Prices.widen(v.Price)
		before := v.Price
		if v.ListPrice != nil {
			before, listed = *v.ListPrice, true
		}
		if i == 0 {
			list = priceRange{before, before}
		}
		list.widen(before)
	}
	if listed {
		p.ListPrices = &list
	}
}

func (r *priceRange) widen(p price) {
	r.Min.Amount, r.Max.Amount = min(r.Min.Amount, p.Amount), max(r.Max.Amount, p.Amount)
}

// plain returns a description, which must not be empty.
func plain(text, otherwise string) description {
	if strings.TrimSpace(text) == "" {
		text = otherwise
	}
	return description{text}
}

// minor converts an amount of the node's own, which is always valid.
func minor(m protocol.Money) price {
	amount, _ := protocol.MoneyDraft{Currency: m.Currency, Amount: protocol.Decimal(m.Amount)}.Minor()
	return price{amount, m.Currency}
}

func measureOf(m protocol.Measure) measure { return measure{m.Value, m.Unit, m.Unit} }

// barcodeType names the standard of a barcode by its length.
func barcodeType(code string) string {
	switch len(code) {
	case 12:
		return "UPC"
	case 13:
		if strings.HasPrefix(code, "978") || strings.HasPrefix(code, "979") {
			return "ISBN"
		}
		return "EAN"
	case 10:
		return "ISBN"
	}
	return "GTIN"
}

// sellerOf names the merchant of a variant. The link for returns is that of release 2026-04-08, which
// has no policies.
func (x *exchange) sellerOf(m protocol.Shop) seller {
	s := seller{Name: m.Name, Links: []link{{UCPShop, m.Page, m.Name}}}
	if m.Returns != nil {
		s.Links = append(s.Links, link{Type: "refund_policy", URL: m.Page + "#returns"})
	}
	if m.Support {
		s.Links = append(s.Links, link{UCPSupport, m.Page + "#contact", "Write to " + m.Name})
	}
	return s
}

// Types of links that this software adds.
const (
	UCPShop    = protocol.UCPPrefix + ".shop"
	UCPSupport = protocol.UCPPrefix + ".support"
)

// policiesOf says on what terms the products can be returned; at is the JSONPath of each product.
func (x *exchange) policiesOf(found []protocol.FoundItem, at func(i int) string) []policy {
	if !x.current() {
		return nil
	}
	var all []policy
	of := map[string]int{} // handle → number of its policy
	for i, f := range found {
		r := f.Merchant.Returns
		if r == nil {
			continue
		}
		n, known := of[f.Merchant.Handle]
		if !known {
			n = len(all)
			of[f.Merchant.Handle] = n
			all = append(all, policy{Type: returnPolicy, Description: description{r.Words(f.Merchant.Support)}, URL: f.Merchant.Page + "#returns",
				Returns: r})
		}
		all[n].AppliesTo = append(all[n].AppliesTo, at(i))
	}
	return all
}

// narrow leaves the variants that pass, and reports whether there are any.
func (p *productItem) narrow(pass func(variant) bool) bool {
	p.Variants = slices.DeleteFunc(p.Variants, func(v variant) bool { return !pass(v) })
	if len(p.Variants) > 0 {
		p.setPrices()
	}
	return len(p.Variants) > 0
}
