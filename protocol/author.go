package protocol

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// Author returns the caller as the author of a text (contract §2). base is the address of the
// node; given is the name that the writer gave itself, "" for none; at is when the node verified
// the caller.
func (c Caller) Author(base, given string, at time.Time) Author {
	if c.Remote != nil {
		return *c.Remote
	}
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
	switch {
	case a.Name != "":
	case c.Standing == Operator:
		a.Name = "Operator"
	default:
		a.Name = Nameless
	}
	a.ClaimedName = cmp.Or(given, c.ClaimedName)
	a.Complete(at)
	return a
}

// Nameless is the name of an author who gave none.
const Nameless = "Anonymous"

// Given is the name of an author as it is told to another node, which finds out itself what it
// knows: the profile's here, otherwise what the writer gave.
func (a *Author) Given() string {
	if a.hosted() {
		return a.Name
	}
	return cmp.Or(a.ClaimedName, a.Name)
}

// settleName separates the name that the node knows from the one that the writer gave: nothing but
// a profile of this node, or what was verified, names a verified author (contract §9). Otherwise
// any agent or site could be shown as "Asha Menon" next to a mark. It may be called repeatedly,
// also for an author that was stored before, or whose verdict has changed.
func (a *Author) settleName() {
	if !a.Verified {
		a.Name, a.ClaimedName = cmp.Or(a.ClaimedName, a.Name), ""
		return
	}
	if known := a.knownName(); known != "" && known != a.Name {
		if a.ClaimedName == "" && a.Name != Nameless {
			a.ClaimedName = a.Name
		}
		a.Name = known
	}
	if a.ClaimedName == a.Name {
		a.ClaimedName = ""
	}
}

// knownName returns what names a verified author without a profile of this node; "" for one with a
// profile, whose name is stored.
func (a *Author) knownName() string {
	switch {
	case a.hosted():
	case a.Proof.Level == ByDirectory && a.Proof.Subject != nil:
		if u, err := url.Parse(*a.Proof.Subject); err == nil && u.Host != "" {
			return u.Host
		}
		return *a.Proof.Subject
	case a.ERC8004 != nil && (a.Proof.Level == ByChainKey || a.Proof.Level == ByWallet || a.Proof.Level == ByOwner):
		return "Agent " + (*a.ERC8004)[strings.LastIndexByte(*a.ERC8004, ':')+1:]
	}
	return ""
}
