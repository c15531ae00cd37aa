-- +goose Up

-- What registries held about chain identities in blocks that authors were verified at, with the proofs of it.
CREATE TABLE state_proof (
	id  TEXT COLLATE "C" PRIMARY KEY, -- identity and hash of the block
	doc BYTEA  NOT NULL,
	at  BIGINT NOT NULL
);

CREATE INDEX state_proof_at ON state_proof (at);
