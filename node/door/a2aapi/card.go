package a2aapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/netx"
)

// A card is the bytes of a signed card. The same profile and keys always give the same bytes, one
// form for clients that name a version and one for others, so that the ETag is the same on every
// process of a deployment.
type card struct {
	body     []byte
	tag      string
	modified time.Time // zero: unknown
}

const cardAge = "public, max-age=300"

// card serves the card of an agent, or the node's when the path names none.
func (a *API) card(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
	head.Add("Vary", "A2A-Version")
	network := a.c.Network(r)
	c, err := a.kept(protocol.WithRequestID(r.Context(), head.Get(requestIDHeader)), protocol.CleanHandle(r.PathValue("handle")), asksForOne(r), network)
	a.c.Table.Limits.Fields(head, network, true)
	if err != nil {
		a.c.Fail(w, r, err)
		return
	}
	head.Set("Cache-Control", cardAge)
	head.Set("ETag", c.tag)
	if !c.modified.IsZero() {
		head.Set("Last-Modified", c.modified.UTC().Format(http.TimeFormat))
	}
	if c.unchanged(r) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(len(c.body)))
	w.WriteHeader(http.StatusOK)
	w.Write(c.body)
}

// asksForOne reports whether a request for a card names a version that has a card of its own: 1.0. Others get the combined card.
func asksForOne(r *http.Request) bool {
	version, err := a2a.Negotiate(versionOf(r), "")
	return err == nil && version == a2a.Version
}

// Card returns the card of an agent, or the node's for "", in the form for clients that name a version, and since when it is so, as far as
// that is known.
func (a *API) Card(ctx context.Context, handle, network string) (body []byte, modified time.Time, err error) {
	c, err := a.kept(ctx, protocol.CleanHandle(handle), true, network)
	if err != nil {
		return nil, time.Time{}, err
	}
	return c.body, c.modified, nil
}

// unchanged applies the preconditions of RFC 9110 §13.1: If-None-Match decides when it is sent,
// otherwise If-Modified-Since.
func (c *card) unchanged(r *http.Request) bool {
	if r.Header["If-None-Match"] != nil {
		return netx.Unchanged(r, c.tag)
	}
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	return err == nil && !c.modified.IsZero() && !c.modified.Truncate(time.Second).After(since)
}

// wellKnown is the value of the path parameter "handle" when a client resolved the well-known path
// against an agent's address without a slash at its end (RFC 3986 §5.2).
const wellKnown = ".well-known"

// kept returns the card of an agent in the form for clients that do or do not name a version, from
// the cache if possible.
func (a *API) kept(ctx context.Context, handle string, versioned bool, network string) (*card, error) {
	if handle == wellKnown {
		return nil, protocol.Errorf(protocol.NotFound, "no agent has the handle %s; an agent's card is at %s/a2a/{handle}/agent-card.json, "+
			"so the base address for clients ends with a slash: %s/a2a/{handle}/", wellKnown, a.c.Base, a.c.Base)
	}
	name := "@" + handle
	if versioned {
		name += " versioned"
	}
	if c, ok := a.cards.Get(name); ok {
		return c, nil
	}
	version := a.cards.Version()
	c, err := a.make(ctx, handle, versioned, network)
	if err == nil {
		a.cards.Put(name, version, c, len(c.body))
	}
	return c, err
}

func (a *API) make(ctx context.Context, handle string, versioned bool, network string) (*card, error) {
	c := &card{}
	var shown a2a.Card
	if handle == "" {
		shown = a2a.FromNode(protocol.OperationsFor(protocol.Everybody, protocol.A2A), a.host)
	} else {
		p, err := a.profile(ctx, handle, network)
		if err != nil {
			return nil, err
		}
		if p.UpdatedAt != nil {
			c.modified = *p.UpdatedAt
		}
		if shown, err = a2a.FromProfile(p, a.host); err != nil {
			return nil, err
		}
	}
	if !versioned {
		shown = shown.Combined()
	}
	shown, err := a.signed(ctx, handle, shown)
	if err != nil {
		return nil, err
	}
	if c.body, err = json.Marshal(shown); err != nil {
		return nil, err
	}
	c.tag = netx.Tag(c.body)
	return c, nil
}

// signed returns a card with its signatures.
func (a *API) signed(ctx context.Context, handle string, c a2a.Card) (a2a.Card, error) {
	keys, err := a.c.Keys(ctx, handle)
	if err != nil {
		return c, fmt.Errorf("keys for the card of %q: %w", handle, err)
	}
	payload, err := c.Payload()
	if err != nil {
		return c, err
	}
	if c.Signatures, err = sign(payload, keys); err != nil {
		return c, fmt.Errorf("sign the card of %q: %w", handle, err)
	}
	return c, nil
}

// extended is the method GetExtendedAgentCard, for callers who have shown who they are.
func (a *API) extended(v *visit) (any, error) {
	if v.handle == "" {
		return nil, a2a.ErrExtendedCard
	}
	if v.c.Standing == protocol.Anonymous {
		return nil, protocol.Errorf(protocol.Unauthorized, "%s", a.wanting(v))
	}
	p, err := a.profile(v.r.Context(), v.handle, v.c.Network)
	if err != nil {
		return nil, err
	}
	var ops []*protocol.Operation
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.A2A) {
		if s := a.c.Table.Schemas; s.Resolve(s.Of(op.In)).Properties["handle"] != nil {
			ops = append(ops, op)
		}
	}
	c, err := a2a.Extended(p, ops, a.host)
	if err != nil {
		return nil, err
	}
	if v.m.version == a2a.Legacy {
		c = c.Combined()
	}
	return a.signed(v.r.Context(), v.handle, c)
}

// profile reads the agent's profile as an unknown caller.
func (a *API) profile(ctx context.Context, handle, network string) (protocol.Profile, error) {
	if !protocol.IsHandle(handle) {
		return protocol.Profile{}, protocol.Errorf(protocol.NotFound, "there is no agent with that handle on this node")
	}
	res, err := a.c.Table.Invoke(ctx, hall.Request{
		Op: protocol.GetAgentProfile.Name, Args: []byte(`{"handle":"` + handle + `"}`), Door: "a2a",
		Evidence: identity.Evidence{Network: network}, Caller: &protocol.Caller{Network: network},
	})
	if err != nil {
		return protocol.Profile{}, err
	}
	p, ok := res.Value.(protocol.Profile)
	if !ok {
		return protocol.Profile{}, fmt.Errorf("%s gave %T", protocol.GetAgentProfile.Name, res.Value)
	}
	return p, nil
}
