-- +goose Up

-- What registries held about chain identities in blocks that authors were verified at, with the proofs of it.
CREATE TABLE state_proof (
	id  TEXT    PRIMARY KEY, -- identity and hash of the block
	doc BLOB    NOT NULL,
	at  INTEGER NOT NULL
) STRICT;

CREATE INDEX state_proof_at ON state_proof (at);
