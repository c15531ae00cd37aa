package web

// roomTexts are refusals and reasons that people meet on pages, as the rooms write them.
var roomTexts = []string{
	// enrolments to chain identities
	english("the token has a new owner"), english("the agent's wallet on chain was changed"),
	english("its key is no longer valid on chain, and no other key has replaced it"),
	english("the chain no longer has the block at which it was enrolled"), english("the registry no longer has this agent"),
	english("the agent now follows another token"), english("the profile was enrolled to another identity"),
	english("it was removed from the profile"),
	english("the identity's owner has not named a key on chain that this node keeps for the profile"),
	english("the profile has another identity; remove it first"), english("another profile of this node is enrolled to %s; remove it there first"),
	english("the key's registration is not final yet; try again in some minutes"), english("the registry has no such agent"),
	english("this node does not read that chain"), english("the chain cannot be read now; send the request again"),
	english("this node reads no blockchain, so it cannot check an identity"),
}
