package protocol

import (
	"strings"
	"time"
)

// The operations that only the UCP door calls. They are in the node's own shapes; the door writes
// UCP's.

// MaxLookup is how many ids one lookup takes.
const MaxLookup = 100

// A Shop is the business that sells an item.
type Shop struct {
	Handle  string         `json:"handle"`
	Name    string         `json:"name"`
	Page    string         `json:"page" format:"uri"`
	Profile string         `json:"profile" format:"uri"`
	Returns *ReturnsPolicy `json:"returns" required:"true" orNull:"true"`
	Support bool           `json:"support" doc:"Whether it takes messages of the kind support, by which a return is asked for."`
}

// A FoundItem is an item on sale, with the business that sells it.
type FoundItem struct {
	Item
	Merchant  Shop `json:"merchant"`
	Untrusted bool `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// UCPItemQuery selects items on sale, by ids or by conditions, which combine. Amounts are in minor
// units.
type UCPItemQuery struct {
	IDs          []string       `json:"ids,omitempty" maxItems:"100" doc:"Ids of items (item_…) or variants (var_…); without other conditions."`
	Q            string         `json:"q,omitempty" maxLength:"200"`
	Merchants    []string       `json:"merchants,omitempty" maxItems:"20" shape:"handle" doc:"Listed or not."`
	Categories   []string       `json:"categories,omitempty" maxItems:"20"`
	Availability []Availability `json:"availability,omitempty" maxItems:"5" enum:"in_stock,backorder,preorder,out_of_stock,discontinued"`
	Currency     string         `json:"currency,omitempty" shape:"currency"`
	Min          *int64         `json:"min,omitempty" minimum:"0"`
	Max          *int64         `json:"max,omitempty" minimum:"0"`
	Paging
}

// A FoundList is a page of items on sale.
type FoundList struct {
	Page[FoundItem]
	Finding
}

var UCPItems = declare[UCPItemQuery, FoundList](Operation{
	Name: "ucp_items", Title: "Items for UCP",
	Summary:     "Items that the listed businesses sell, with what the Universal Commerce Protocol says of their sellers.",
	Description: "The rows and the order of list_items.",
	ReadOnly:    true, Codes: []Code{InvalidCursor},
	Example: UCPItemQuery{Q: "dosa"},
})

// A Location is where a business can be found: its merchant record without the items. Its texts were
// written by its owner.
type Location struct {
	ID             string           `json:"id" doc:"Handle of a business of this node, which has one location; ActivityPub id of one of another node."`
	Handle         string           `json:"handle" doc:"Of the business, on its node."`
	Node           *string          `json:"node" nullable:"true" doc:"Node of the business, null for this one. Every action takes place there."`
	Name           string           `json:"name"`
	Category       *string          `json:"category" nullable:"true"`
	City           *string          `json:"city" nullable:"true"`
	Address        *Address         `json:"address" required:"true" orNull:"true"`
	Geo            *Geo             `json:"geo" required:"true" orNull:"true"`
	Timezone       *string          `json:"timezone" nullable:"true" doc:"IANA time zone of the hours."`
	Hours          []DayHours       `json:"hours"`
	ExceptionHours []ExceptionHours `json:"exceptionHours"`
	Phone          *string          `json:"phone" nullable:"true"`
	Page           string           `json:"page" format:"uri"`
	Profile        string           `json:"profile" format:"uri"`
	Untrusted      bool             `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// UCPLocationQuery selects locations. All conditions combine.
type UCPLocationQuery struct {
	Handles  []string `json:"handles,omitempty" maxItems:"100" shape:"handle" doc:"Only these businesses, listed or not; then q does not count."`
	Actors   []string `json:"actors,omitempty" maxItems:"100" maxLength:"2048" doc:"Beside handles, or instead: only these businesses of followed nodes, by their ActivityPub ids."`
	Q        string   `json:"q,omitempty" maxLength:"200"`
	Category string   `json:"category,omitempty" maxLength:"60"`
	City     string   `json:"city,omitempty" maxLength:"80"`
	OpenAt   string   `json:"openAt,omitempty" format:"date-time" maxLength:"40" doc:"Only those that are open at this instant (RFC 3339). Those with unknown hours are left out."`
	Near     *Geo     `json:"near,omitempty" doc:"With radius."`
	Radius   float64  `json:"radius,omitempty" minimum:"0" maximum:"21000000" doc:"Only those at most so many metres from near, on the ellipsoid of WGS 84. Those without coordinates are left out."`
	Paging
}

// At returns the instant of openAt, zero when there is none.
func (q UCPLocationQuery) At() time.Time {
	t, err := time.Parse(time.RFC3339, q.OpenAt)
	if err != nil {
		return time.Time{}
	}
	return t
}

var UCPLocations = declare[UCPLocationQuery, List[Location]](Operation{
	Name: "ucp_locations", Title: "Locations for UCP",
	Summary: "Where businesses are and when they are open: by text, city, distance, and whether they are open at an instant.",
	Description: "The rows and the order of list_merchants: this node's, then those of followed nodes. " +
		"A page may hold fewer than limit, or none, and still have a next one: distance and hours are " +
		"evaluated for some hundred businesses a page.",
	ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: UCPLocationQuery{City: "Bengaluru"},
})

// CleanQuery removes what a query of lists would read as more than words.
func CleanQuery(s string) string { return strings.TrimSpace(queryMarks.Replace(s)) }

var queryMarks = strings.NewReplacer(`"`, " ", ":", " ", "-", " ", "“", " ", "”", " ")
