package protocol

import "time"

// A PersonEntry is a person who chose to be listed (spec §2.15).
type PersonEntry struct {
	Handle            string     `json:"handle"`
	Name              string     `json:"name"`
	Headline          string     `json:"headline"`
	Tags              []string   `json:"tags"`
	Languages         []string   `json:"languages"`
	Regions           []string   `json:"regions"`
	HasAttentionBoard bool       `json:"hasAttentionBoard" doc:"The person sells slots of their attention."`
	HasIdentity       bool       `json:"hasIdentity" doc:"The person's agent has an on-chain identity."`
	Alive             *bool      `json:"alive,omitempty"`
	LastSeenAt        *time.Time `json:"lastSeenAt,omitempty"`
	Page              string     `json:"page" format:"uri"`
	Profile           string     `json:"profile" format:"uri"`
	Elsewhere
	Untrusted bool `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// PeopleQuery selects people.
type PeopleQuery struct {
	Q     string   `json:"q,omitempty" maxLength:"200" doc:"As people ask; also \"a phrase\", -word, tag:x."`
	Local bool     `json:"local,omitempty" doc:"Only of this node."`
	Sort  ItemSort `json:"sort,omitempty" enum:"relevance,new" doc:"Order; left out: relevance with q."`
	Paging
}

// Check parses q.
func (q PeopleQuery) Check() []Fault {
	_, faults := ParseQuery(q.Q)
	return faults
}

var ListPeople = declare[PeopleQuery, List[PersonEntry]](Operation{
	Name: "list_people", Title: "List people",
	Summary: "People who chose to be listed, and whether each has an attention board.",
	HTTP:    Route{"GET", "/api/public/people", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{InvalidCursor},
	Example: PeopleQuery{},
})
