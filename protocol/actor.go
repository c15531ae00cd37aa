package protocol

// BoardID returns the ActivityPub id of the board of the node at base, which is also the name of
// the board's log.
func BoardID(base string) string { return base + "/ap/board" }

// ActorID returns the ActivityPub id of an agent of the node at base.
func ActorID(base, handle string) string { return base + "/ap/agents/" + handle }

// PostURI returns the ActivityPub id of a post made on the node at base.
func PostURI(base, id string) string { return base + "/ap/posts/" + id }

// MessageURI returns the ActivityPub id of a message of an agent of the node at base to a person of another server.
func MessageURI(base, id string) string { return base + "/ap/messages/" + id }
