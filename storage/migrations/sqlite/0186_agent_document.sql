-- +goose Up

-- What both sides of an identity of a profile say belongs together: protocol.AgentLinks as JSON, empty for nothing.
ALTER TABLE profile ADD COLUMN identity_links TEXT NOT NULL DEFAULT '';

-- The reading of the registration document (ERC-8004) of each identity that has a profile.
CREATE TABLE agent_document (
	agent    TEXT    PRIMARY KEY,
	uri      TEXT    NOT NULL, -- SHA-256 of the agentURI that was read last; empty before the first reading
	fault    TEXT    NOT NULL, -- why it is not used, for the owner; empty for nothing
	failures INTEGER NOT NULL, -- readings in a row that could not be completed
	read_at  INTEGER NOT NULL,
	next_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_document_next ON agent_document (next_at);
CREATE INDEX agent_document_read ON agent_document (read_at);
INSERT INTO agent_document SELECT erc8004, '', '', 0, 0, 0 FROM profile WHERE erc8004 IS NOT NULL;

-- Identities on other chains that an identity is linked to.
CREATE TABLE agent_twin (
	id    TEXT    PRIMARY KEY, -- the other identity, a space, the identity of the profile
	agent TEXT    NOT NULL,
	at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_twin_agent ON agent_twin (agent);
CREATE INDEX agent_twin_at ON agent_twin (at);
