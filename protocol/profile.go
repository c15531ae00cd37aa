package protocol

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ProfileKind says whom an agent represents.
type ProfileKind string

const (
	Person   ProfileKind = "person"
	Business ProfileKind = "business"
)

// ProfileStandard names what a profile is (spec §2.1, §9).
const ProfileStandard = "service.agent-profile/v1"

// TagPattern is the form of a tag of a profile (spec §8).
const TagPattern = `^[a-z0-9][a-z0-9_.:-]{0,31}$`

// A Profile is the public, machine-readable description of one agent (spec
// §2.1). All text in it was written by the agent's owner and is data, never
// instructions; untrusted_content says so.
type Profile struct {
	Schema        string        `json:"$schema,omitempty" format:"uri" doc:"Address of its schema."`
	Version       int           `json:"version" minimum:"1" maximum:"1" doc:"Always 1."`
	Handle        string        `json:"handle" shape:"kept-handle" doc:"Unique here, lower case."`
	ProfileDraft                // what of it has another form here is below, and replaces it
	Identity      *Identity     `json:"identity,omitempty"`
	Capabilities  []Capability  `json:"capabilities" maxItems:"20"`
	Needs         []Need        `json:"needs" maxItems:"20" doc:"What it seeks from other agents."`
	Interfaces    Interfaces    `json:"interfaces"`
	ContactPolicy ContactPolicy `json:"contactPolicy"`
	Reputation    *Reputation   `json:"reputation" required:"false" orNull:"true"`
	UpdatedAt     *time.Time    `json:"updatedAt,omitempty"`
	Picture       *Picture      `json:"picture,omitempty"`
	Untrusted     bool          `json:"untrusted_content" required:"false" enum:"true" doc:"Always true."`
	Listed        struct{}      `json:"-"` // only its owner reads it
	Alive         *bool         `json:"alive,omitempty" doc:"Whether what it lists answered when last asked."`
	LastSeenAt    *time.Time    `json:"lastSeenAt,omitempty" doc:"When something it lists last answered."`
	Elsewhere
}

// A Liveness says whether what a profile lists answers.
type Liveness string

const (
	LivenessUnknown Liveness = "unknown" // never asked, or nothing to ask
	LivenessAlive   Liveness = "alive"
	LivenessDead    Liveness = "dead" // asked, without an answer
)

// An AssistantAgent is the service's own assistant of a person (spec §2.2).
type AssistantAgent struct {
	Name                     string `json:"name" line:"true" minLength:"1" maxLength:"80" doc:"Name of the assistant."`
	By                       string `json:"by" line:"true" maxLength:"80" doc:"Operator of the assistant."`
	Product                  string `json:"product" line:"true" maxLength:"80" doc:"Name of the product."`
	AcceptingMeetingRequests bool   `json:"acceptingMeetingRequests" doc:"Whether it accepts meeting requests."`
}

// An Identity is an agent's on-chain identity, if any (spec §2.3). Without one the three addresses
// are null and Note says so.
type Identity struct {
	ERC8004      *string `json:"erc8004" nullable:"true" pattern:"^eip155:[1-9][0-9]{0,18}:0x[0-9a-fA-F]{40}:(0|[1-9][0-9]{0,77})$" doc:"eip155:<chainId>:<registry>:<agentId>"`
	Registration *string `json:"registration" nullable:"true" format:"uri"`
	KeyDirectory *string `json:"keyDirectory" nullable:"true" format:"uri" doc:"Web Bot Auth key directory, signed by the key itself."`
	Note         string  `json:"note" maxLength:"300"`
	AgentLinks
}

// AgentLinks are what an identity and something else say of each other, as the node that has the profile read it. They show to whom
// the identity belongs, and nothing about who signs for it.
type AgentLinks struct {
	Domains        []AgentLink `json:"domains,omitempty" maxItems:"3" doc:"Hosts whose /.well-known/agent-registration.json names this identity."`
	AlsoRegistered []AgentLink `json:"alsoRegistered,omitempty" maxItems:"4" doc:"Identities of the same owner; each document names both."`
}

// An AgentLink is a host, or an identity in lower case, that an identity is linked to.
type AgentLink struct {
	Name      string    `json:"name" maxLength:"260"`
	Since     time.Time `json:"since" doc:"First of the unbroken readings that found it."`
	CheckedAt time.Time `json:"checkedAt" doc:"Last reading that found it."`
}

// Interfaces are the ways to reach an agent (spec §2.4). A null value means
// that way is not accepted; a member that is absent does not apply to the kind.
type Interfaces struct {
	Page           string   `json:"page" format:"uri"`
	Profile        string   `json:"profile" format:"uri"`
	A2A            *string  `json:"a2a" nullable:"true" format:"uri" doc:"A2A endpoint, for agents with their own ERC-8004 identity."`
	AgentCard      string   `json:"agentCard" format:"uri"`
	PublicContact  *string  `json:"publicContact" nullable:"true" format:"uri" doc:"Accepts a POST with a solved proof of work."`
	PublicMCP      string   `json:"publicMcp" format:"uri"`
	Board          string   `json:"board" format:"uri"`
	Catalog        **string `json:"catalog,omitempty" nullable:"true" format:"uri" doc:"Businesses only; null while no catalog is open."`
	Meetings       **string `json:"meetings,omitempty" nullable:"true" format:"uri" doc:"Persons only; null while none are accepted."`
	MeetingPage    **string `json:"meetingPage,omitempty" nullable:"true" format:"uri" doc:"Persons only; null while none are accepted."`
	AttentionBoard **string `json:"attentionBoard,omitempty" nullable:"true" format:"uri" doc:"Persons only; null while no attention board is open."`
}

// Rooms are the services that a profile may have open: meeting requests and an attention board for
// a person, the catalog for a business.
type Rooms struct{ Meetings, AttentionBoard, Catalog bool }

// A ContactKind is the purpose of a message to an agent.
type ContactKind string

const (
	Question     ContactKind = "question"
	QuoteRequest ContactKind = "quote_request"
	Support      ContactKind = "support"
)

// A ContactPolicy says who may write to an agent, and what (spec §2.5).
type ContactPolicy struct {
	OutsideAgentsWithIdentity bool     `json:"outsideAgentsWithIdentity" doc:"Whether agents of other nodes with a verified identity may write."`
	Anonymous                 bool     `json:"anonymous" doc:"Whether visitors without identity may write, for a proof of work."`
	Kinds                     []string `json:"kinds" maxItems:"3" uniqueItems:"true" enum:"question,quote_request,support"`
	AnonymousRequires         string   `json:"anonymousRequires" maxLength:"300"`
	ResponseTime              *string  `json:"responseTime" nullable:"true" maxLength:"80" doc:"When to expect an answer, in words."`
}

// Reputation counts reviews that are confirmed on the chain (spec §2.6); null without any.
type Reputation struct {
	Reviews int           `json:"reviews" minimum:"0"`
	Average *float64      `json:"average" nullable:"true"`
	Source  string        `json:"source" maxLength:"300"`
	Paid    []PaidReviews `json:"paid,omitempty" doc:"By how the payments are known."`
}

// PaidReviews are those of a reputation whose payments are known in one way.
type PaidReviews struct {
	Known   string  `json:"known" enum:"provider,confirmed,chain" doc:"confirmed: the buyer reported the payment, the shop confirmed it. chain: paid on the chain."`
	Reviews int     `json:"reviews" minimum:"1"`
	Average float64 `json:"average"`
}

// A ReturnsPolicy is a business's return and refund policy (spec §2.7).
type ReturnsPolicy struct {
	AcceptsReturns         bool    `json:"acceptsReturns" doc:"Whether returns are accepted at all."`
	WindowDays             *int    `json:"windowDays,omitempty" minimum:"0" maximum:"3650" doc:"For how many days."`
	Covers                 string  `json:"covers,omitempty" maxLength:"300" doc:"What may be returned."`
	GoodsMustComeBack      *bool   `json:"goodsMustComeBack,omitempty" doc:"Whether the goods have to be sent back."`
	SupportAgentApprovesUp *string `json:"supportAgentApprovesUpTo,omitempty" nullable:"true" maxLength:"40" doc:"Amount with currency symbol."`
	Instructions           *string `json:"instructions,omitempty" nullable:"true" maxLength:"1000" doc:"What to do to return something."`
	Note                   string  `json:"note,omitempty" maxLength:"300" doc:"Anything else about returns."`
}

// A PricingModel says how a capability is paid for.
type PricingModel string

const (
	Free   PricingModel = "free"
	Fixed  PricingModel = "fixed"
	PerUse PricingModel = "per_use"
	Quote  PricingModel = "quote"
)

// A Capability is something an agent can do (spec §2.8).
type Capability struct {
	ID          string   `json:"id" shape:"name" doc:"Names it within the profile."`
	Name        string   `json:"name" minLength:"1" maxLength:"60" doc:"In a few words."`
	Description string   `json:"description" minLength:"1" maxLength:"400" doc:"What it does."`
	Tags        []string `json:"tags,omitempty" maxItems:"8" shape:"tag" doc:"Words to find it by, lower case."`
	Input       string   `json:"input,omitempty" maxLength:"200" doc:"What to send to use it."`
	Output      string   `json:"output,omitempty" maxLength:"200" doc:"What it returns."`
	Pricing     *Pricing `json:"pricing,omitempty" doc:"What it costs."`
	Endpoint    string   `json:"endpoint,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"An https address where the capability can be used directly."`
}

// Pricing says what a capability costs (spec §2.8). Amount is a JSON number
// because the profile's schema says so.
type Pricing struct {
	Model    PricingModel `json:"model" enum:"free,fixed,per_use,quote" doc:"How it is paid for; quote: ask first."`
	Currency string       `json:"currency,omitempty" shape:"currency" doc:"ISO 4217 code such as INR."`
	Amount   *float64     `json:"amount,omitempty" minimum:"0" doc:"In units of the currency: 49.5 is 49.50."`
	Note     string       `json:"note,omitempty" maxLength:"120" doc:"Anything else about the price."`
}

// A Need is something an agent seeks from other agents (spec §2.9).
type Need struct {
	ID          string   `json:"id" shape:"name" doc:"Names it within the profile."`
	Description string   `json:"description" minLength:"1" maxLength:"400" doc:"What is needed."`
	Tags        []string `json:"tags,omitempty" maxItems:"8" shape:"tag" doc:"Words to find it by, lower case."`
}

// A ProfileDraft is what an owner writes of a profile, and with it the part of the public one that the owner decides. Its form
// has a field for each text with the tag label. The node adds the rest: interfaces, the
// addresses of the identity, reputation, times. The command line accepts a whole profile as the
// node returns it, and ignores that rest; an owner's draft has no such members.
type ProfileDraft struct {
	Version       int             `json:"version,omitempty" minimum:"1" maximum:"1" doc:"Always 1."`
	Handle        string          `json:"handle" shape:"handle" doc:"Which profile."`
	Name          string          `json:"name" label:"Name" line:"true" minLength:"1" maxLength:"80" doc:"Its name."`
	Kind          ProfileKind     `json:"kind" enum:"person,business" doc:"What it is."`
	Headline      string          `json:"headline" required:"false" label:"Headline" line:"true" maxLength:"140" doc:"One line."`
	Description   string          `json:"description" required:"false" label:"Description" maxLength:"1000" doc:"Plain text."`
	Agent         *AssistantAgent `json:"agent,omitempty" doc:"The service's assistant; persons only."`
	Capabilities  []Capability    `json:"capabilities,omitempty" maxItems:"20" doc:"What the agent can do." as:"put_capability"`
	Needs         []Need          `json:"needs,omitempty" maxItems:"20" doc:"What it needs from other agents." as:"put_need"`
	Tags          []string        `json:"tags,omitzero" maxItems:"12" shape:"tag" doc:"Lower case."`
	Languages     []string        `json:"languages,omitzero" maxItems:"10" shape:"language" maxLength:"35" doc:"BCP 47 codes."`
	Regions       []string        `json:"regions,omitzero" maxItems:"20" shape:"region" doc:"ISO 3166 codes."`
	Timezone      string          `json:"timezone,omitempty" shape:"zone" maxLength:"64" doc:"IANA time zone."`
	ContactPolicy *PolicyDraft    `json:"contactPolicy,omitempty" doc:"Who may write to the agent, and what. Left out: unchanged; for a new profile, everyone."`
	Returns       *ReturnsPolicy  `json:"returns,omitempty" doc:"Return policy; businesses only."`
	Listed        *bool           `json:"listed,omitempty" doc:"Whether lists and searches show the profile, here and at nodes that follow; it can be read by its handle either way. Left out: unchanged; for a new profile, true."`
}

// A PolicyDraft is the part of a contact policy that the owner decides.
type PolicyDraft struct {
	OutsideAgentsWithIdentity bool     `json:"outsideAgentsWithIdentity" doc:"Whether agents of other nodes with a verified identity may write."`
	Anonymous                 bool     `json:"anonymous" doc:"Whether visitors without identity may write, for a proof of work."`
	Kinds                     []string `json:"kinds,omitempty" maxItems:"3" uniqueItems:"true" enum:"question,quote_request,support" doc:"None given: all of them."`
	ResponseTime              *string  `json:"responseTime,omitempty" nullable:"true" maxLength:"80" doc:"When to expect an answer, in words."`
}

// Check returns the faults that tags cannot express: a reserved handle, members of the other kind,
// an unknown time zone, repeated ids, an amount without currency.
func (d ProfileDraft) Check() []Fault {
	var faults []Fault
	add := func(pointer, code, detail string) { faults = append(faults, Fault{pointer, code, detail}) }
	switch {
	case !IsHandle(d.Handle): // in its stored form: not @Asha
		add("/handle", "wrong-shape", "must match "+HandlePattern)
	case ReservedHandle(d.Handle):
		add("/handle", "reserved", "this handle belongs to the node; choose another")
	}
	if d.Kind == Business && d.Agent != nil {
		add("/agent", "not-for-kind", "agent is for persons; leave it out for a business")
	}
	if d.Kind == Person && d.Returns != nil {
		add("/returns", "not-for-kind", "returns is for businesses; leave it out for a person")
	}
	if d.Timezone != "" {
		if _, ok := Zone(d.Timezone); !ok {
			add("/timezone", "unknown-zone", unknownZone)
		}
	}
	seen := map[string]bool{}
	for i, c := range d.Capabilities {
		at := "/capabilities/" + strconv.Itoa(i)
		if seen[c.ID] {
			add(at+"/id", "repeated", "another capability has this id")
		}
		seen[c.ID] = true
		if p := c.Pricing; p != nil && p.Amount != nil && p.Currency == "" {
			add(at+"/pricing/currency", "required", "an amount needs its currency, such as INR")
		} else if p != nil && p.Currency != "" && !IsCurrency(p.Currency) {
			add(at+"/pricing/currency", "unknown-currency", unknownCurrency)
		}
	}
	seen = map[string]bool{}
	for i, n := range d.Needs {
		if seen[n.ID] {
			add("/needs/"+strconv.Itoa(i)+"/id", "repeated", "another need has this id")
		}
		seen[n.ID] = true
	}
	return faults
}

// isAddress reports whether an address may be published: it has a host, and no user name and password.
func isAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Hostname() != "" && u.User == nil
}

const unknownZone = "not an IANA time zone name such as Asia/Kolkata"

// The capabilities of a person's open rooms (spec §2.8).
var (
	scheduleMeeting = Capability{ID: "schedule-meeting", Name: "Schedule a meeting",
		Description: "Ask for a meeting; each request is approved by hand before anything is put on a calendar.",
		Tags:        []string{"scheduling", "calendar"}, Pricing: &Pricing{Model: Free}}
	attentionBoard = Capability{ID: "attention-board", Name: "Attention board",
		Description: "Bid in rupees for a slot of attention; nothing is charged unless the payment link is paid.",
		Tags:        []string{"attention", "ads"}, Pricing: &Pricing{Model: PerUse, Currency: "INR"}}
)

// MaxCapabilities is how many capabilities a profile has at most (spec §8).
const MaxCapabilities = 20

// AllCapabilities returns the capabilities that the profile shows: those that the owner wrote and,
// as space permits, those of the open rooms (spec §2.8). A capability that the owner wrote
// replaces a room's with the same id.
func (d ProfileDraft) AllCapabilities(open Rooms) []Capability {
	all := append([]Capability{}, d.Capabilities...)
	add := func(isOpen bool, room Capability) {
		if isOpen && d.Kind == Person && len(all) < MaxCapabilities && !slices.ContainsFunc(all, func(c Capability) bool { return c.ID == room.ID }) {
			all = append(all, room)
		}
	}
	add(open.Meetings, scheduleMeeting)
	add(open.AttentionBoard, attentionBoard)
	return all
}

// NoIdentity is the note of a profile without an on-chain identity (spec §2.3).
const NoIdentity = "No on-chain identity is set up yet."

// IdentityNote tells a reader how to verify the agent's messages (spec §2.3).
func IdentityNote(erc8004 string) string {
	parts := strings.Split(erc8004, ":")
	if len(parts) != 4 {
		return NoIdentity
	}
	return "Verify this agent's messages against the key registered on chain " + parts[1] + " for agent " + parts[3] + " of registry " + parts[2] + "."
}

// AnonymousRequires is the sentence in every contact policy (spec §2.5).
const AnonymousRequires = "A solved proof of work obtained from GET /api/public/pow?purpose=contact is required."

// The directory's read operations (spec §4.2).

// AgentQuery selects profiles.
type AgentQuery struct {
	Q           string      `json:"q,omitempty" maxLength:"200" doc:"As people ask; also \"a phrase\", -word, tag:x."`
	Kind        ProfileKind `json:"kind,omitempty" enum:"business,person" doc:"Only businesses, or only persons."`
	Capability  string      `json:"capability,omitempty" maxLength:"40" doc:"Id or tag of a capability."`
	Tag         string      `json:"tag,omitempty" maxLength:"32" doc:"Only agents with this tag."`
	Region      string      `json:"region,omitempty" shape:"region" doc:"ISO 3166 code; a country finds its subdivisions too."`
	HasIdentity *bool       `json:"hasIdentity,omitempty" doc:"Only agents with (true) or without (false) an on-chain identity."`
	Local       bool        `json:"local,omitempty" doc:"Only of this node."`
	Sort        ItemSort    `json:"sort,omitempty" enum:"relevance,new" doc:"Order; left out: relevance with q."`
	Paging
}

// Check parses q.
func (q AgentQuery) Check() []Fault {
	_, faults := ParseQuery(q.Q)
	return faults
}

// HandleInput names one agent.
type HandleInput struct {
	Handle string `json:"handle" shape:"handle" doc:"Handle, in any case, with or without @." example:"asha"`
}

var GetAgentProfile = declare[HandleInput, Profile](Operation{
	Name: "get_agent_profile", Title: "Get an agent's profile",
	Summary: "One agent's standard profile: what it can do, what it needs, how to reach it, and its contact policy.",
	HTTP:    Route{"GET", "/api/public/agents/{handle}", 200}, Doors: Everywhere, ReadOnly: true,
	MaxAge: 30 * time.Second, Codes: []Code{NotFound},
	Example: HandleInput{Handle: "asha"},
})

var SearchAgents = declare[AgentQuery, List[Profile]](Operation{
	Name: "search_agents", Title: "Search agents",
	Summary:     "Agent profiles by text, kind, tag and region.",
	Description: "In the order of list_merchants; q takes kind:business too.",
	HTTP:        Route{"GET", "/api/public/agents", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{InvalidCursor},
	Example: AgentQuery{Kind: Business, Region: "IN"},
})
