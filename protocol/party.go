package protocol

import "slices"

// Whose a thing is: a post, a thread, a bid, a meeting request. One rule for all of them.
//
// A thing has a name, or a few, and is its caller's when they share one. What a profile of this node
// did is the profile's, whatever becomes of its chain identity. What a chain identity without a
// profile did belongs to the identity and the owner of its token together (contract §9): a new key or
// wallet of the same owner keeps it, another owner is another party, and who buys the token back has
// what was begun under that control and nothing that others began meanwhile. What was stored before
// owners were belongs to the identity and the key. Everything else is its key's.

// AgentName returns the name of a chain identity under one owner of its token.
func AgentName(agent, owner string) string { return "agent:" + agent + "@" + owner }

func agentKey(agent, keyid string) string { return "agent:" + agent + "#" + keyid }

// Names returns the names under which the caller's things and news are stored on this node. A caller
// that is not recognised has none.
func (c Caller) Names() []string {
	if c.Standing&(Session|Signed) == 0 {
		return nil
	}
	var names []string
	if c.Standing == Signed && c.Agent != "" && c.Owner != "" {
		names = append(names, AgentName(c.Agent, c.Owner))
		if c.KeyID != "" {
			names = append(names, agentKey(c.Agent, c.KeyID))
		}
	}
	if c.Handle != "" {
		names = append(names, "handle:"+c.Handle)
	}
	for _, h := range c.Handles {
		if h != c.Handle {
			names = append(names, "handle:"+h)
		}
	}
	if c.Account != "" {
		names = append(names, "account:"+c.Account)
	}
	if c.KeyID != "" {
		names = append(names, "key:"+c.KeyID)
	}
	return names
}

// Names returns the names of an author's things, like Caller.Names. Only an author that this node has
// verified has any; a handle of another node is not one of this node's.
func (a Author) Names() []string {
	switch {
	case !a.Verified:
		return nil
	case a.hosted():
		return []string{"handle:" + *a.Handle}
	}
	return a.keys()
}

// keys returns the names by which the key of an author has its things.
func (a Author) keys() []string {
	switch {
	case a.ERC8004 != nil && a.Proof.Owner != nil:
		return []string{AgentName(*a.ERC8004, *a.Proof.Owner)}
	case a.KeyID == nil:
		return nil
	case a.ERC8004 != nil:
		return []string{agentKey(*a.ERC8004, *a.KeyID)}
	}
	return []string{"key:" + *a.KeyID}
}

// Made reports whether the caller began or wrote what has this author. profile is the profile of this
// node that did, "" for none: where a room stores it apart from the author, it is also "" when that
// profile was deleted, whose handle may be another's by now. A profile's own key that was not admitted
// for the profile is not the profile.
func (c Caller) Made(a Author, profile string) bool {
	names := c.Names()
	switch {
	case c.Partial || !a.Verified:
		return false
	case a.hosted():
		return profile != "" && slices.Contains(names, "handle:"+profile)
	}
	return slices.ContainsFunc(a.keys(), func(name string) bool { return slices.Contains(names, name) })
}

// Wrote is Made for what stores its writer in the author only.
func (c Caller) Wrote(a Author) bool {
	profile := ""
	if a.Handle != nil {
		profile = *a.Handle
	}
	return c.Made(a, profile)
}

// Is reports whether a verified author is the verified author b: the same profile of this node, or by
// key and chain identity the same as what Made accepts. An unverified author is never the same.
func (a Author) Is(b Author) bool {
	if !a.Verified || !b.Verified {
		return false
	}
	if a.hosted() && b.hosted() && *a.Handle == *b.Handle {
		return true
	}
	var shown []string
	if a.ERC8004 != nil && a.KeyID != nil {
		shown = append(shown, agentKey(*a.ERC8004, *a.KeyID))
	}
	if a.KeyID != nil {
		shown = append(shown, "key:"+*a.KeyID)
	}
	shown = append(shown, a.keys()...)
	return slices.ContainsFunc(b.keys(), func(name string) bool { return slices.Contains(shown, name) })
}

// hosted reports whether the author is a profile of this node.
func (a Author) hosted() bool { return a.Node == nil && a.Handle != nil }

// KnownAs returns every name by which an owner may have blocked the caller: first, under which the
// room counts it, and what else it has shown. A block of a chain identity binds the owner whom it was
// set against, and one from before owners were stored whoever has the identity.
func (c Caller) KnownAs(first string) []string {
	all := []string{first}
	add := func(kind, name string) {
		if name != "" && !slices.Contains(all, kind+name) {
			all = append(all, kind+name)
		}
	}
	if c.Agent != "" && c.Owner != "" {
		add("", AgentName(c.Agent, c.Owner))
	}
	add("agent:", c.Agent)
	add("account:", c.Account)
	add("handle:", c.Handle)
	add("key:", c.KeyID)
	return all
}

// BlockNames returns the names by which a block refuses an author: of a verified one all that it has
// shown.
func (a Author) BlockNames() (names []string) {
	if !a.Verified {
		return nil
	}
	if a.Handle != nil {
		names = append(names, "handle:"+*a.Handle)
	}
	if a.KeyID != nil {
		names = append(names, "key:"+*a.KeyID)
	}
	if a.ERC8004 != nil && a.Proof.Owner != nil {
		names = append(names, AgentName(*a.ERC8004, *a.Proof.Owner))
	}
	return names
}

// AgentBlocks returns the values of operators' blocks of a chain identity: one that names only the
// identity binds every owner, one that names an owner this owner; owner may be "".
func AgentBlocks(agent, owner string) []string {
	switch {
	case agent == "":
		return nil
	case owner == "":
		return []string{agent}
	}
	return []string{agent, agent + "@" + owner}
}

// AgentBlocks returns the values of operators' blocks of the author's chain identity.
func (a Author) AgentBlocks() []string {
	switch {
	case a.ERC8004 == nil:
		return nil
	case a.Proof.Owner == nil:
		return []string{*a.ERC8004}
	}
	return AgentBlocks(*a.ERC8004, *a.Proof.Owner)
}
