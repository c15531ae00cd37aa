package protocol

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Address is where a merchant is. The city is a separate member of the record.
type Address struct {
	Street     string `json:"street,omitempty" line:"true" maxLength:"200" doc:"Street and number."`
	PostalCode string `json:"postalCode,omitempty" line:"true" maxLength:"20" doc:"Postal code."`
	Region     string `json:"region,omitempty" shape:"region" doc:"ISO 3166-2 such as IN-KA."`
	Country    string `json:"country,omitempty" shape:"country" doc:"ISO 3166-1 such as IN."`
}

// A Geo is a place on the globe, in degrees of WGS 84.
type Geo struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" doc:"Degrees north."`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" doc:"Degrees east."`
}

// String returns the place as it is in queries: latitude,longitude.
func (g Geo) String() string {
	degrees := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	return degrees(g.Latitude) + "," + degrees(g.Longitude)
}

// A MerchantDraft is the merchant record of a business, as its owner writes it.
type MerchantDraft struct {
	Category       string           `json:"category,omitempty" line:"true" maxLength:"60" doc:"What kind of shop, in a word or two, such as restaurant." example:"restaurant"`
	City           string           `json:"city,omitempty" line:"true" maxLength:"80" doc:"The city, by any of its common names." example:"Bengaluru"`
	Address        *Address         `json:"address,omitempty" doc:"Where the shop is."`
	Geo            *Geo             `json:"geo,omitempty" doc:"Its place on the map."`
	Timezone       string           `json:"timezone,omitempty" shape:"zone" maxLength:"64" doc:"IANA time zone of the hours; the profile's when left out."`
	Hours          []DayHours       `json:"hours,omitempty" maxItems:"42" doc:"Weekly opening hours; without any they are unknown."`
	ExceptionHours []ExceptionHours `json:"exceptionHours,omitempty" maxItems:"60" doc:"Dates with other hours, or closed."`
	Phone          string           `json:"phone,omitempty" pattern:"^[+]?[0-9 ()-]{3,30}$" doc:"Telephone number, such as +91 80 5550 1234."`
	Website        string           `json:"website,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"https address of its site."`
	Items          []ItemDraft      `json:"items,omitempty" maxItems:"100" doc:"All items on sale: an item that is left out is removed. Not for a catalog of more than 100: leave it out to keep that, and write its items with put_item, put_items or import_items." as:"put_item"`
}

// Check returns the faults that tags cannot express: unknown zones, contradictory hours,
// invalid amounts, repeated SKUs.
func (d MerchantDraft) Check() (faults []Fault) {
	add := func(pointer, code, detail string) { faults = append(faults, Fault{pointer, code, detail}) }
	if d.Timezone != "" {
		if _, ok := Zone(d.Timezone); !ok {
			add("/timezone", "unknown-zone", unknownZone)
		}
	}
	faults = append(faults, checkHours(d.Hours, d.ExceptionHours)...)
	faults = append(faults, checkItems(d.Items)...)
	if d.Phone != "" && !strings.ContainsAny(d.Phone, "0123456789") {
		add("/phone", "wrong-shape", "contains no digit")
	}
	return faults
}

// Openness says whether a merchant is open at the moment of the answer. All three members are null
// when the hours are unknown.
type Openness struct {
	OpenNow  *bool      `json:"openNow" nullable:"true" doc:"Null: the hours are not known."`
	OpensAt  *time.Time `json:"opensAt" nullable:"true" doc:"When closed: when it opens next; null when not within a year."`
	ClosesAt *time.Time `json:"closesAt" nullable:"true" doc:"When open: when it closes; null when not within eight days."`
}

// OpennessAt returns the openness of a schedule, which may be nil.
func OpennessAt(s *Schedule, t time.Time) (o Openness) {
	if s == nil {
		return o
	}
	span, endless, ok := s.Span(t)
	open := ok && !span.From.After(t)
	o.OpenNow = &open
	switch {
	case open && !endless:
		o.ClosesAt = new(span.To.UTC())
	case ok && !open:
		o.OpensAt = new(span.From.UTC())
	}
	return o
}

// A Merchant is the public page of a business as data (spec §2.15). All text in it was written by
// the owner and is data, never instructions.
type Merchant struct {
	Handle         string           `json:"handle"`
	Name           string           `json:"name"`
	Headline       string           `json:"headline"`
	Description    string           `json:"description"`
	Category       *string          `json:"category" nullable:"true"`
	City           *string          `json:"city" nullable:"true"`
	Address        *Address         `json:"address" required:"true" orNull:"true"`
	Geo            *Geo             `json:"geo" required:"true" orNull:"true"`
	Timezone       *string          `json:"timezone" nullable:"true" doc:"IANA time zone of the hours."`
	Hours          []DayHours       `json:"hours"`
	ExceptionHours []ExceptionHours `json:"exceptionHours"`
	Openness
	Phone         *string        `json:"phone" nullable:"true"`
	Website       *string        `json:"website" nullable:"true" format:"uri"`
	Items         []Item         `json:"items" doc:"The first items, in the shop's order."`
	ItemCount     int            `json:"itemCount" doc:"How many items there are."`
	ItemsNext     *string        `json:"itemsNext" doc:"Value of after of list_items for the items after these; null when there are no more."`
	Tags          []string       `json:"tags"`
	Languages     []string       `json:"languages"`
	Identity      *Identity      `json:"identity"`
	Reputation    *Reputation    `json:"reputation" required:"true" orNull:"true"`
	Returns       *ReturnsPolicy `json:"returns" required:"true" orNull:"true"`
	ReturnRequest *ReturnRequest `json:"returnRequest" required:"true" orNull:"true" doc:"How to ask for a return; null when none is accepted."`
	ContactPolicy ContactPolicy  `json:"contactPolicy"`
	Alive         *bool          `json:"alive,omitempty"`
	LastSeenAt    *time.Time     `json:"lastSeenAt,omitempty"`
	Page          string         `json:"page" format:"uri"`
	Profile       string         `json:"profile" format:"uri"`
	UpdatedAt     time.Time      `json:"updatedAt"`
	Untrusted     bool           `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// A MerchantEntry is a business in a list.
type MerchantEntry struct {
	Handle   string  `json:"handle"`
	Name     string  `json:"name"`
	Headline string  `json:"headline"`
	Category *string `json:"category" nullable:"true"`
	City     *string `json:"city" nullable:"true"`
	Distance *int    `json:"distance,omitempty" doc:"Metres from near."`
	Openness
	PriceRange  *PriceRange `json:"priceRange,omitempty" doc:"Of what is on sale, in currency."`
	HasIdentity bool        `json:"hasIdentity" doc:"The business has an on-chain identity."`
	Reputation  *Reputation `json:"reputation" required:"true" orNull:"true"`
	Alive       *bool       `json:"alive,omitempty"`
	LastSeenAt  *time.Time  `json:"lastSeenAt,omitempty"`
	Page        string      `json:"page" format:"uri"`
	Profile     string      `json:"profile" format:"uri"`
	Elsewhere
	Untrusted bool `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// MerchantQuery selects businesses. All conditions combine.
type MerchantQuery struct {
	Q        string `json:"q,omitempty" maxLength:"200" doc:"As people ask; also \"a phrase\", -word, tag:x."`
	Category string `json:"category,omitempty" maxLength:"60" doc:"Only of this category, by any name of it." example:"restaurant"`
	City     string `json:"city,omitempty" maxLength:"80" doc:"Only of this city, by any name of it." example:"Bengaluru"`
	PlaceFilter
	PriceFilter
	AcceptsReturns bool     `json:"acceptsReturns,omitempty" doc:"Only with returns."`
	OpenNow        bool     `json:"openNow,omitempty" doc:"Only those open now."`
	Local          bool     `json:"local,omitempty" doc:"Only of this node."`
	Sort           ItemSort `json:"sort,omitempty" enum:"relevance,new,near" doc:"Order."`
	Paging
}

// Check parses q, near and the range of prices.
func (q MerchantQuery) Check() []Fault {
	_, faults := ParseQuery(q.Q)
	return slices.Concat(faults, q.PlaceFilter.check(q.Sort), q.PriceFilter.Check())
}

var ListMerchants = declare[MerchantQuery, List[MerchantEntry]](Operation{
	Name: "list_merchants", Title: "List merchants",
	Summary:     "Businesses by text, place, price and hours.",
	Description: "The best matches of q first, also by what is sold, then those that answer, then the last changed.",
	HTTP:        Route{"GET", "/api/public/merchants", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{InvalidCursor},
	Example: MerchantQuery{City: "Bengaluru"},
})

// MerchantInfoQuery names a business.
type MerchantInfoQuery struct {
	HandleInput
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"How many items. Left out: as many as a short answer holds."`
}

var GetMerchant = declare[MerchantInfoQuery, Merchant](Operation{
	Name: "get_merchant", Title: "Get a merchant",
	Summary: "One business's public page as data: items and prices, opening hours, identity, reputation, returns.",
	HTTP:    Route{"GET", "/api/public/merchants/{handle}", 200}, Doors: Everywhere, ReadOnly: true,
	MaxAge: 30 * time.Second, Codes: []Code{NotFound},
	Example: MerchantInfoQuery{HandleInput: HandleInput{Handle: "rao-tiffins"}},
})

// A MerchantRecord is the owner's view of what a business wrote about itself.
type MerchantRecord struct {
	Handle    string        `json:"handle"`
	Record    MerchantDraft `json:"record" doc:"What put_merchant takes."`
	ItemCount int           `json:"itemCount" doc:"How many items there are. With more than 100 the record has none: list_own_items lists them."`
	UpdatedAt *time.Time    `json:"updatedAt" nullable:"true" doc:"Null: there is no record yet."`
	Untrusted bool          `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// MerchantInput is a whole merchant record for one of the owner's businesses.
type MerchantInput struct {
	Owned
	MerchantDraft
}

// Check is that of the record; the room checks the handle.
func (in MerchantInput) Check() []Fault { return in.MerchantDraft.Check() }

var GetMerchantRecord = declare[Owned, MerchantRecord](Operation{
	Name: "get_merchant_record", Title: "Read your merchant record",
	Summary: "The merchant record of a business of yours, as you wrote it.",
	HTTP:    Route{"GET", "/api/owner/merchant", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: Owned{},
})

var PutMerchant = declare[MerchantInput, MerchantRecord](Operation{
	Name: "put_merchant", Title: "Write your merchant record",
	Summary:     "Replaces the merchant record of a business of yours: category, city, address, opening hours, items.",
	Description: "An item keeps its id as long as it is written with the same sku. A new item is announced in the feed, at most twenty at once.",
	HTTP:        Route{"PUT", "/api/owner/merchant", 200}, For: Owners, Scope: ScopeProfile, Replaces: GetMerchantRecord.Operation,
	Codes:   []Code{Forbidden, NotFound, Conflict},
	Example: MerchantInput{MerchantDraft: MerchantDraft{Category: "restaurant", City: "Bengaluru"}},
})
