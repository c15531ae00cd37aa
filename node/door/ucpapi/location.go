package ucpapi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// Filters of locations that this software adds.
const (
	filterCategory = protocol.UCPPrefix + ".category"
	filterCity     = protocol.UCPPrefix + ".city"
)

type locations struct {
	UCP        protocol.UCPMeta `json:"ucp"`
	Locations  []location       `json:"locations"`
	Pagination *pagination      `json:"pagination,omitempty"`
	Messages   []message        `json:"messages,omitempty"`
	Untrusted  bool             `json:"untrusted_content"`
}

type address struct {
	Street     string `json:"street_address,omitempty"`
	Locality   string `json:"address_locality,omitempty"`
	Region     string `json:"address_region,omitempty"`
	Country    string `json:"address_country,omitempty"`
	PostalCode string `json:"postal_code,omitempty"`
	Phone      string `json:"phone_number,omitempty"`
}

type dayHours struct {
	Day    string `json:"day"`
	Opens  string `json:"opens"`
	Closes string `json:"closes"`
}

type exceptionHours struct {
	Title   string `json:"title,omitempty"`
	From    string `json:"valid_from"`
	Through string `json:"valid_through"`
	Opens   string `json:"opens,omitempty"`
	Closes  string `json:"closes,omitempty"`
}

// A location is a shop; its id is the handle of the business, or its ActivityPub id where it is at another node.
type location struct {
	ID             string           `json:"id"`
	Name           string           `json:"name"`
	Address        *address         `json:"address,omitempty"`
	Geo            *protocol.Geo    `json:"geo,omitempty"`
	Timezone       string           `json:"timezone,omitempty"`
	Hours          []dayHours       `json:"hours,omitempty"`
	ExceptionHours []exceptionHours `json:"exception_hours,omitempty"`
	URL            string           `json:"url"`
	Profile        string           `json:"profile"`
	Node           *string          `json:"node,omitempty"`
	Inputs         []input          `json:"inputs,omitempty"` // lookup only
}

func locationOf(l protocol.Location) location {
	out := location{ID: l.ID, Name: l.Name, Geo: l.Geo, URL: l.Page, Profile: l.Profile, Node: l.Node}
	a := address{}
	if l.Address != nil {
		_, region, _ := strings.Cut(l.Address.Region, "-") // ISO 3166-2 without the country
		a = address{Street: l.Address.Street, Region: region, Country: l.Address.Country, PostalCode: l.Address.PostalCode}
		if a.Country == "" && len(l.Address.Region) > 2 {
			a.Country = l.Address.Region[:2]
		}
	}
	if l.City != nil {
		a.Locality = *l.City
	}
	if l.Phone != nil {
		a.Phone = *l.Phone
	}
	if a != (address{}) {
		out.Address = &a
	}
	if l.Timezone == nil {
		return out
	}
	for _, h := range l.Hours {
		out.Hours = append(out.Hours, dayHours{h.Day, h.Opens, closing(h.Opens, h.Closes)})
	}
	for _, e := range l.ExceptionHours {
		out.ExceptionHours = append(out.ExceptionHours, exceptionHours{e.Title, e.ValidFrom, e.ValidThrough, e.Opens, closing(e.Opens, e.Closes)})
	}
	if len(out.Hours)+len(out.ExceptionHours) > 0 {
		out.Timezone = *l.Timezone
	}
	return out
}

// closing writes the end of a day in UCP's hours, which go up to 23:59: a whole day is 00:00 to 23:59,
// and another shift that ends with the day closes at 00:00 of the next.
func closing(opens, closes string) string {
	switch {
	case closes != "24:00":
		return closes
	case opens == "00:00":
		return "23:59"
	}
	return "00:00"
}

// readLocations reads the conditions. none is true when no location can meet them.
func (x *exchange) readLocations(ctx context.Context, in *object) (ask protocol.UCPLocationQuery, messages []message, none bool, err error) {
	ask.Q = firstRunes(protocol.CleanQuery(in.text("query", 800)), 200)
	if d := in.object("distance"); d != nil {
		center := d.object("center")
		if center == nil {
			d.wrong("center", "is required")
		}
		ask.Near = &protocol.Geo{Latitude: center.number("latitude", -90, 90), Longitude: center.number("longitude", -180, 180)}
		ask.Radius = min(d.number("max", 0, math.MaxFloat64), 21e6) // farther than any place is from another
	}
	if in.object("serves") != nil {
		in.wrong("serves", "this node does not know which places a business serves; use distance")
	}
	filters := in.object("filters")
	if filters == nil {
		return ask, nil, false, nil
	}
	if hours := filters.object("hours"); hours != nil {
		if ask.OpenAt = hours.text("open_at", 40); ask.At().IsZero() {
			hours.wrong("open_at", "must be an instant such as 2026-11-08T09:30:00+05:30 (RFC 3339)")
		}
		ask.OpenAt = ask.At().Format(time.RFC3339)
	}
	ask.Category, ask.City = filters.text(filterCategory, 240), filters.text(filterCity, 320)
	for _, name := range slices.Sorted(maps.Keys(filters.members)) {
		switch name {
		case "hours", "amenities", "inventory", filterCategory, filterCity:
			continue
		}
		if messages = append(messages, unknownFilter(name)); len(messages) == 10 {
			break
		}
	}
	if len(filters.texts("amenities", 50, 200)) > 0 {
		none = true
		messages = append(messages, info("amenities_unknown", "$.filters.amenities", "businesses on this node do not list amenities, so no location has them"))
	}
	sellers, asked, err := x.inStock(ctx, filters)
	if asked {
		ask.Handles, none = sellers, none || len(sellers) == 0
	}
	return ask, messages, none, err
}

// inStock returns the businesses that have every item of the filter inventory.
func (x *exchange) inStock(ctx context.Context, filters *object) (handles []string, asked bool, err error) {
	for i, want := range filters.objects("inventory", 20) {
		id, status := want.text("id", 200), want.text("availability_status", 20)
		found, err := x.byIDs(ctx, []string{id})
		if err != nil {
			return nil, true, err
		}
		var sellers []string
		for _, f := range found {
			for _, v := range f.Variants {
				fits := id == f.ID || id == v.ID
				stocked := string(v.Availability) == status || status == "" && v.Availability == protocol.InStock
				if fits && stocked && (i == 0 || slices.Contains(handles, f.Merchant.Handle)) {
					sellers = append(sellers, f.Merchant.Handle)
				}
			}
		}
		if handles, asked = distinct(sellers), true; len(handles) == 0 {
			return nil, true, nil
		}
	}
	return handles, asked, nil
}

// searchLocations is the operation search of locations.
func searchLocations(ctx context.Context, x *exchange, in *object) (any, error) {
	ask, messages, none, err := x.readLocations(ctx, in)
	if err != nil {
		return nil, err
	}
	page := in.object("pagination")
	limit, sent := page.integer("limit", 1, 1<<31)
	if !sent {
		limit = defaultLimit
	}
	ask.Limit, ask.After = int(min(limit, maxLimit)), page.text("cursor", 400)
	if m := x.merchant; m != "" {
		none = none || !protocol.IsHandle(m) || ask.Handles != nil && !slices.Contains(ask.Handles, m)
		ask.Handles = []string{m}
	}
	if *in.fault != nil {
		return nil, *in.fault
	}
	out := locations{UCP: x.meta(), Locations: []location{}, Pagination: &pagination{}, Messages: messages, Untrusted: true}
	if none {
		return out, nil
	}
	found, err := invoke(ctx, x, protocol.UCPLocations, ask)
	if err != nil {
		return nil, err
	}
	for _, l := range found.Items {
		out.Locations = append(out.Locations, locationOf(l))
	}
	out.Pagination, out.Messages = pageOf(found.Next), append(out.Messages, findings(found.Finding)...)
	return out, nil
}

// locationID is an id as it was asked for in the spelling that locations have.
func locationID(id string) string {
	if h := protocol.CleanHandle(id); protocol.IsHandle(h) {
		return h
	}
	return id
}

// maxLocations is how many ids one lookup of locations evaluates.
const maxLocations = 50

// lookupLocations is the operation lookup of locations. Of too many ids the first are looked up.
func lookupLocations(ctx context.Context, x *exchange, in *object) (any, error) {
	ids := distinct(in.texts("ids", 4096, 200))
	ask, messages, none, err := x.readLocations(ctx, in)
	if err != nil {
		return nil, err
	}
	if *in.fault == nil && len(ids) == 0 {
		in.wrong("ids", "give at least one id of a location")
	}
	if *in.fault != nil {
		return nil, *in.fault
	}
	if more := len(ids) - maxLocations; more > 0 {
		ids = ids[:maxLocations]
		messages = append(messages, info("batch_limit_applied", "$.ids", fmt.Sprintf("at most %d ids are looked up at once; %d were not", maxLocations, more)))
	}
	out := locations{UCP: x.meta(), Locations: []location{}, Messages: messages, Untrusted: true}
	var handles []string
	for _, id := range ids {
		switch h := locationID(id); {
		case ask.Handles != nil && !slices.Contains(ask.Handles, h): // of those that have the items
		case protocol.IsHandle(h):
			handles = append(handles, h)
		default:
			ask.Actors = append(ask.Actors, h)
		}
	}
	if none || len(handles)+len(ask.Actors) == 0 {
		return out, nil
	}
	ask.Handles = distinct(handles)
	found, err := invoke(ctx, x, protocol.UCPLocations, ask)
	if err != nil {
		return nil, err
	}
	for _, l := range found.Items {
		one := locationOf(l)
		for _, id := range ids {
			if locationID(id) == one.ID {
				one.Inputs = append(one.Inputs, input{ID: id})
			}
		}
		out.Locations = append(out.Locations, one)
	}
	return out, nil
}
