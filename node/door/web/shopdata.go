package web

import (
	"strings"
	"time"

	"stoa/protocol"
)

// shopData is a business as schema.org's LocalBusiness, with its items as offers. It has the items that
// the page shows, so it is bounded as the page is. host is that of the node.
func shopData(m protocol.Merchant, host string) thing {
	t := thing{"@context": "https://schema.org", "@type": "LocalBusiness", "@id": m.Page, "name": m.Name, "url": m.Page,
		"alternateName": "@" + m.Handle + "@" + host, "mainEntityOfPage": thing{"@type": "ProfilePage", "url": m.Page}}
	t.set("description", strings.TrimSpace(m.Headline+" "+m.Description))
	t.set("telephone", m.Phone)
	t.set("sameAs", m.Website)
	t.set("keywords", strings.Join(m.Tags, ", "))
	if len(m.Languages) > 0 {
		t["knowsLanguage"] = m.Languages
	}
	if a := postalData(m); len(a) > 1 {
		t["address"] = a
	}
	if m.Geo != nil {
		t["geo"] = thing{"@type": "GeoCoordinates", "latitude": m.Geo.Latitude, "longitude": m.Geo.Longitude}
	}
	var hours, others []thing
	for _, h := range m.Hours {
		day := schemaOrg + strings.ToUpper(h.Day[:1]) + h.Day[1:]
		hours = append(hours, thing{"@type": "OpeningHoursSpecification", "dayOfWeek": day, "opens": h.Opens, "closes": endOfDay(h.Closes)})
	}
	for _, e := range coming(m, time.Now()) {
		one := thing{"@type": "OpeningHoursSpecification", "validFrom": e.ValidFrom, "validThrough": e.ValidThrough, "opens": "00:00", "closes": "00:00"}
		if e.Opens != "" {
			one["opens"], one["closes"] = e.Opens, endOfDay(e.Closes)
		}
		one.set("name", e.Title)
		others = append(others, one)
	}
	if hours != nil {
		t["openingHoursSpecification"] = hours
	}
	if others != nil {
		t["specialOpeningHoursSpecification"] = others
	}
	if r := m.Reputation; r != nil && r.Reviews > 0 && r.Average != nil {
		t["aggregateRating"] = thing{"@type": "AggregateRating", "ratingValue": *r.Average, "bestRating": 5, "worstRating": 0, "reviewCount": r.Reviews}
	}
	if m.Returns != nil {
		t["hasMerchantReturnPolicy"] = returnsData(m)
	}
	var offers []thing
	for _, i := range m.Items {
		offers = append(offers, offerData(i, m.Page))
	}
	if offers != nil {
		t["hasOfferCatalog"] = thing{"@type": "OfferCatalog", "name": m.Name, "itemListElement": offers}
	}
	return t
}

// endOfDay writes 24:00 in the form of schema.org, which ends at 23:59:59.
func endOfDay(closes string) string {
	if closes == "24:00" {
		return "23:59:59"
	}
	return closes
}

func postalData(m protocol.Merchant) thing {
	a := thing{"@type": "PostalAddress"}
	a.set("addressLocality", m.City)
	if m.Address != nil {
		a.set("streetAddress", m.Address.Street)
		a.set("postalCode", m.Address.PostalCode)
		_, region, _ := strings.Cut(m.Address.Region, "-")
		a.set("addressRegion", region)
		a.set("addressCountry", m.Address.Country)
	}
	return a
}

// returnsData is the policy of returns. Schema.org needs the country that it holds for, which is the
// shop's.
func returnsData(m protocol.Merchant) thing {
	r := m.Returns
	p := thing{"@type": "MerchantReturnPolicy", "url": m.Page + "#returns", "description": r.Words(protocol.TakesSupport(m.ContactPolicy))}
	if m.Address != nil {
		p.set("applicableCountry", m.Address.Country)
	}
	category := "MerchantReturnUnlimitedWindow"
	switch {
	case !r.AcceptsReturns:
		category = "MerchantReturnNotPermitted"
	case r.WindowDays != nil:
		category = "MerchantReturnFiniteReturnWindow"
		p["merchantReturnDays"] = *r.WindowDays
	}
	p["returnPolicyCategory"] = schemaOrg + category
	return p
}

// availabilityWords are schema.org's words for availability.
var availabilityWords = map[protocol.Availability]string{
	protocol.InStock: "InStock", protocol.Backorder: "BackOrder", protocol.Preorder: "PreOrder", protocol.OutOfStock: "OutOfStock",
	protocol.Discontinued: "Discontinued",
}

// offerData is an item on offer; of one with several prices, an offer with the range.
func offerData(i protocol.Item, page string) thing {
	p := thing{"@type": "Product", "@id": page + "#" + i.ID, "name": i.Name, "sku": i.SKU}
	p.set("description", i.Description)
	p.set("category", i.Category)
	p.set("image", i.Image)
	p.set("url", i.URL)
	p.set("keywords", strings.Join(i.Tags, ", "))
	o := thing{"@type": "Offer", "itemOffered": p, "availability": schemaOrg + availabilityWords[i.Availability]}
	switch {
	case i.PriceRange != nil:
		o["@type"], o["lowPrice"], o["highPrice"] = "AggregateOffer", i.PriceRange.Min.Amount, i.PriceRange.Max.Amount
		o["offerCount"], o["priceCurrency"] = len(i.Variants), i.PriceRange.Min.Currency
	case i.Price != nil:
		o["price"], o["priceCurrency"] = i.Price.Amount, i.Price.Currency
	}
	return o
}
