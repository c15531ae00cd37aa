package protocol

import (
	"strings"
	"time"
)

// Author returns the caller as the author of a text (contract §2). base is the address of the
// node; given is the name that an unknown writer gave itself; at is when the node verified the
// caller.
func (c Caller) Author(base, given string, at time.Time) Author {
	a := Author{Name: c.Name, Verified: true, Method: BySignature, Proof: c.Proof}
	if c.Handle != "" {
		handle, actor := c.Handle, ActorID(base, c.Handle)
		a.Handle, a.Actor = &handle, &actor
	}
	if c.Agent != "" {
		agent := c.Agent
		a.ERC8004 = &agent
		if c.Owner != "" {
			a.Proof.Owner = &c.Owner
		}
	}
	if c.KeyID != "" {
		keyid := c.KeyID
		a.KeyID = &keyid
	}
	switch c.Standing {
	case Session, Operator:
		a.Method, a.Proof = BySession, AuthorProof{}
	case Proof, Anonymous:
		a.Method, a.Verified = ByProof, false
	}
	if c.Handle == "" && given != "" {
		a.Name = given // no profile vouches for the name; at most the identity next to it does
	}
	if a.Name == "" {
		a.Name = c.nameless()
	}
	a.Rest(at)
	return a
}

func (c Caller) nameless() string {
	switch {
	case c.Agent != "":
		return "Agent " + c.Agent[strings.LastIndexByte(c.Agent, ':')+1:]
	case c.Standing == Operator:
		return "Operator"
	}
	return "Anonymous"
}
