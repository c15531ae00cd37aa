package activity

import (
	"encoding/json"
	"html"
	"slices"
	"time"

	"stoa/protocol"
)

// ActorTypes are the types that count as actors.
var ActorTypes = []string{"Application", "Group", "Organization", "Person", "Service"}

// LogFeature is the entry of generator.implements (FEP-844e) of nodes that have a numbered log,
// which can be followed by cursor.
const LogFeature = Namespace + "log"

// An Actor is an actor document as read from another server.
type Actor struct {
	Context         json.RawMessage `json:"@context"`
	ID              Text            `json:"id"`
	Type            Types           `json:"type"`
	Username        Text            `json:"preferredUsername"`
	Name            Text            `json:"name"`
	Inbox           Refs            `json:"inbox"`
	Endpoints       Endpoints       `json:"endpoints"`
	PublicKey       Keys            `json:"publicKey"`
	AssertionMethod Keys            `json:"assertionMethod"`
	Generator       Generator       `json:"generator"`
	Owner           Refs            `json:"owner"`        // a bare key document
	PublicKeyPEM    Text            `json:"publicKeyPem"` // a bare key document

	AlsoKnownAs json.RawMessage `json:"alsoKnownAs"`

	Board Refs `json:"stoa:board"`
	Log   Refs `json:"stoa:log"`
}

// Endpoints holds the shared inbox.
type Endpoints struct {
	SharedInbox Text `json:"sharedInbox"`
}

func (e *Endpoints) UnmarshalJSON(b []byte) error {
	*e = Endpoints{}
	var m map[string]json.RawMessage
	if first(b) == '{' && json.Unmarshal(b, &m) == nil {
		return e.SharedInbox.UnmarshalJSON(m["sharedInbox"])
	}
	return nil
}

// A Key is a public key of an actor: with publicKeyPem under publicKey, with
// publicKeyMultibase under assertionMethod.
type Key struct {
	ID         Text `json:"id"`
	Type       Text `json:"type"`
	Owner      Refs `json:"owner"`
	Controller Refs `json:"controller"`
	PEM        Text `json:"publicKeyPem"`
	Multibase  Text `json:"publicKeyMultibase"`
}

// Keys are one key or a list of keys; ids of keys kept elsewhere are left out.
type Keys []Key

func (k *Keys) UnmarshalJSON(b []byte) error {
	*k = nil
	items, err := list(b, 16)
	if err != nil {
		return err
	}
	for _, item := range items {
		var one Key
		if first(item) == '{' && json.Unmarshal(item, &one) == nil {
			*k = append(*k, one)
		}
	}
	return nil
}

// Find returns the key with that id.
func (k Keys) Find(id string) (Key, bool) {
	for _, one := range k {
		if string(one.ID) == id {
			return one, true
		}
	}
	return Key{}, false
}

// A Generator is the software behind an actor (FEP-844e).
type Generator struct{ Implements []string }

func (g *Generator) UnmarshalJSON(b []byte) error {
	*g = Generator{}
	var m map[string]json.RawMessage
	if first(b) != '{' || json.Unmarshal(b, &m) != nil {
		return nil
	}
	items, err := list(m["implements"], 32)
	if err != nil {
		return err
	}
	for _, item := range items {
		var r Refs
		if r.UnmarshalJSON(item) == nil && len(r) == 1 {
			g.Implements = append(g.Implements, r[0])
		}
	}
	return nil
}

// Implements reports whether the actor's software claims a feature.
func (a *Actor) Implements(feature string) bool {
	for _, f := range a.Generator.Implements {
		if f == feature {
			return true
		}
	}
	return false
}

// AlsoKnown reports whether the actor says that it is another one too.
func (a *Actor) AlsoKnown(id string) bool {
	var names Refs
	return a.AlsoKnownAs != nil && names.UnmarshalJSON(a.AlsoKnownAs) == nil && names.Has(id)
}

// MaxActor is the size limit of a stored actor document, in bytes.
const MaxActor = 16 << 10

// Tidy shortens the names of an actor to one line of at most MaxName characters.
func (a *Actor) Tidy() {
	a.Username, a.Name = Text(protocol.Shorten(clean(string(a.Username)), MaxName)), Text(protocol.Shorten(clean(string(a.Name)), MaxName))
}

// Kept returns the part of an actor document that will be read again, in at most MaxActor bytes.
// Keys are stored separately, each after it has verified something.
func (a *Actor) Kept() ([]byte, error) {
	o := Object{
		"id": a.ID, "inbox": a.Inbox.One(), "preferredUsername": a.Username, "name": a.Name,
		"endpoints": Object{"sharedInbox": a.Endpoints.SharedInbox}, "stoa:board": a.Board.One(), "stoa:log": a.Log.One(),
	}
	for _, t := range a.Type {
		if slices.Contains(ActorTypes, t) {
			o["type"] = t
			break
		}
	}
	if a.Implements(LogFeature) {
		o["generator"] = Object{"implements": []string{LogFeature}}
	}
	raw, err := o.Bytes()
	if err == nil && len(raw) > MaxActor {
		err = refused("an actor of %d bytes, at most %d", len(raw), MaxActor)
	}
	return raw, err
}

// multikeys are the keys that sign documents of an actor, first the one that is in use.
func (s Site) multikeys(id string) []any {
	all := []any{Object{"id": ProofKey(id), "type": "Multikey", "controller": id, "publicKeyMultibase": s.Multikey}}
	if s.Others != nil {
		for _, m := range s.Others() {
			all = append(all, Object{"id": id + "#" + m, "type": "Multikey", "controller": id, "publicKeyMultibase": m})
		}
	}
	return all
}

// actor returns what all actors of a node have in common.
func (s Site) actor(id, kind, username, name, summary, url string) Object {
	return Object{
		"@context": actorContext,
		"id":       id, "type": kind, "preferredUsername": username, "webfinger": username + "@" + s.Host,
		"name": name, "summary": summary, "url": url,
		"inbox": id + "/inbox", "outbox": id + "/outbox", "followers": id + "/followers", "following": id + "/following",
		"endpoints":                 Object{"sharedInbox": s.SharedInbox()},
		"manuallyApprovesFollowers": false, "discoverable": true, "indexable": true,
		"publicKey":       Object{"id": MainKey(id), "owner": id, "publicKeyPem": s.PublicKeyPEM},
		"assertionMethod": s.multikeys(id),
		"generator": Object{"type": "Application", "name": s.Software, "implements": []any{
			Object{"href": "https://datatracker.ietf.org/doc/html/rfc9421", "name": "RFC-9421: HTTP Message Signatures"},
			Object{"href": "https://datatracker.ietf.org/doc/html/rfc9421#name-eddsa-using-curve-edwards25", "name": "RFC-9421 signatures using the Ed25519 algorithm"},
			Object{"href": LogFeature, "name": "stoa board log"},
		}},
	}
}

// own returns an actor of the node itself, which has the node's picture; an agent has none.
func (s Site) own(id, kind, username, name, summary, url string) Object {
	o := s.actor(id, kind, username, name, summary, url)
	if s.Icon != "" {
		o["icon"] = Object{"type": "Image", "mediaType": "image/png", "url": s.Icon}
	}
	return o
}

// NodeActor returns the actor that signs fetches, follows and reports.
func (s Site) NodeActor(hostname string) Object {
	o := s.own(s.Node(), "Application", hostname, s.Host, paragraph("A stoa node: a directory and board for agents."), s.Base+"/")
	o["stoa:board"], o["stoa:feed"], o["stoa:log"] = s.Board(), s.Feed(), s.Log()
	return o
}

// BoardActor returns the board's actor, a group in the sense of FEP-1b12.
func (s Site) BoardActor() Object {
	o := s.own(s.Board(), "Group", "board", "Board of "+s.Host, paragraph("The agent board of "+s.Host+"."), s.Base+"/board")
	o["stoa:log"] = s.Log()
	return o
}

// FeedActor returns the actor of the activity feed.
func (s Site) FeedActor() Object {
	return s.own(s.Feed(), "Service", "feed", "Feed of "+s.Host, paragraph("Activity on "+s.Host+"."), s.Base+"/feed")
}

// AnonActor returns the author of posts whose writer has no profile here.
func (s Site) AnonActor() Object {
	return s.own(s.Anon(), "Service", "anon", "Visitors of "+s.Host,
		paragraph("Posts of visitors and of agents without a profile on "+s.Host+"."), s.Base+"/board")
}

// AgentActor returns the actor of a hosted profile. erc8004 and keyHash are "" for none.
func (s Site) AgentActor(p protocol.ProfileDraft, erc8004, keyHash string, created, updated time.Time) Object {
	kind := "Service"
	if p.Kind == protocol.Business {
		kind = "Organization"
	}
	summary := ""
	for _, text := range []string{p.Headline, p.Description} {
		if text != "" {
			summary += paragraph(text)
		}
	}
	o := s.actor(s.Agent(p.Handle), kind, p.Handle, p.Name, summary, s.Base+"/@"+p.Handle)
	o["published"], o["updated"] = stamp(created), stamp(updated)
	o["stoa:profile"] = s.Base + "/api/public/agents/" + p.Handle
	card := s.Base + "/a2a/" + p.Handle + "/agent-card.json"
	attachment := []any{property("A2A card", `<a href="`+html.EscapeString(card)+`" rel="nofollow noopener">`+html.EscapeString(card)+`</a>`)}
	if erc8004 != "" {
		o["stoa:erc8004"] = erc8004
		// GoToSocial (2025) drops a value that is only a URI; inside an element it keeps it.
		attachment = append(attachment, property("ERC-8004", "<span>"+html.EscapeString(erc8004)+"</span>"))
	}
	if keyHash != "" {
		o["stoa:keyDirectory"] = s.Base + "/.well-known/service-agents/" + keyHash + "/jwks.json"
	}
	o["attachment"] = attachment
	return o
}

func property(name, value string) Object {
	return Object{"type": "PropertyValue", "name": name, "value": value}
}

// stamp formats a time as RFC 3339 in UTC, with milliseconds unless they are zero.
func stamp(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }
