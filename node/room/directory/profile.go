package directory

import (
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Profile makes the public profile of a stored one: the owner's draft, and what the
// node derives from it (spec §2.1).
func (d *Directory) Profile(s *storage.StoredProfile) protocol.Profile {
	in := s.Draft
	in.Tags, in.Languages, in.Regions, in.Listed = list(in.Tags), list(in.Languages), list(in.Regions), nil
	p := protocol.Profile{
		Schema: d.Base + "/schemas/agent-profile.v1.json", Version: 1,
		Handle: in.Handle, ProfileDraft: in, Identity: d.identity(s), Capabilities: in.AllCapabilities(s.Open()), Needs: list(in.Needs),
		Interfaces: d.interfaces(in, s.Open()), ContactPolicy: in.Policy(), UpdatedAt: new(s.UpdatedAt), Untrusted: true,
		Picture: s.Picture.Public(d.Base),
	}
	p.Alive, p.LastSeenAt = liveness(s)
	p.Reputation = d.Reputation(s)
	if in.Kind == protocol.Person && p.Agent == nil {
		p.Agent = &protocol.AssistantAgent{Name: assistant(in.Name), By: "stoa", Product: "stoa", AcceptingMeetingRequests: s.Open().Meetings}
	}
	return p
}

func liveness(s *storage.StoredProfile) (alive *bool, seen *time.Time) {
	if s.Alive == protocol.LivenessAlive || s.Alive == protocol.LivenessDead {
		alive = new(s.Alive == protocol.LivenessAlive)
	}
	if !s.LastSeenAt.IsZero() {
		seen = &s.LastSeenAt
	}
	return alive, seen
}

// assistant names the assistant of a person, within the length that its name may
// have.
func assistant(name string) string {
	const most, suffix = 80, "'s assistant"
	if runes := []rune(name); len(runes) > most-len(suffix) {
		name = string(runes[:most-len(suffix)-1]) + "…"
	}
	return name + suffix
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (d *Directory) identity(s *storage.StoredProfile) *protocol.Identity {
	if s.ERC8004 == "" {
		return &protocol.Identity{Note: protocol.NoIdentity}
	}
	id := &protocol.Identity{ERC8004: &s.ERC8004, Note: protocol.IdentityNote(s.ERC8004), AgentLinks: s.Links}
	if s.KeyHash != "" {
		at := d.Base + "/.well-known/service-agents/" + s.KeyHash
		registration, keys := at+"/registration.json", at+"/jwks.json"
		id.Registration, id.KeyDirectory = &registration, &keys
	}
	return id
}

// interfaces are the ways to reach the agent (spec §2.4). publicContact is null if
// the contact policy accepts no anonymous messages, a2a if it accepts none of
// those whom A2A serves: outside agents with an identity, and by a2a-callers others. The interface of a room is null while the room
// is not open, and absent for the kind that cannot have it.
func (d *Directory) interfaces(in protocol.ProfileDraft, open protocol.Rooms) protocol.Interfaces {
	page, api := d.Base+"/@"+in.Handle, d.Base+"/api/public/agents/"+in.Handle
	i := protocol.Interfaces{
		Page: page, Profile: api,
		AgentCard: d.Base + "/a2a/" + in.Handle + "/agent-card.json",
		PublicMCP: d.Base + protocol.MCPPath,
		Board:     d.Base + "/api/public/board?author=" + in.Handle,
	}
	policy := in.Policy()
	if policy.Anonymous {
		contact := api + "/contact"
		i.PublicContact = &contact
	}
	if policy.OutsideAgentsWithIdentity || d.Guests && policy.Anonymous {
		a2a := d.Base + "/a2a/" + in.Handle
		i.A2A = &a2a
	}
	if in.Kind == protocol.Business {
		i.Catalog = room(open.Catalog, d.Base+"/api/ucp/catalog/search")
		return i
	}
	i.Meetings, i.MeetingPage = room(open.Meetings, api+"/meetings"), room(open.Meetings, page+"/meet")
	i.AttentionBoard = room(open.AttentionBoard, page+"/board")
	return i
}

// room is the address of a room, null while it is not open.
func room(open bool, address string) **string {
	var at *string
	if open {
		at = &address
	}
	return &at
}
