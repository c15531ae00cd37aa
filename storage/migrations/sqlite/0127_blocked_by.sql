-- +goose Up

-- Actors of other servers that block an actor of this node.
CREATE TABLE blocked_by (
	id          INTEGER PRIMARY KEY,
	actor       TEXT    NOT NULL,
	local_actor TEXT    NOT NULL,
	uri         TEXT    NOT NULL, -- of the Block
	domain      TEXT    NOT NULL, -- registrable, of the actor
	at          INTEGER NOT NULL,
	UNIQUE (actor, local_actor)
) STRICT;
CREATE INDEX blocked_by_domain ON blocked_by (domain);
CREATE INDEX blocked_by_at ON blocked_by (at);
