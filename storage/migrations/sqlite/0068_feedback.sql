-- +goose Up

-- Feedback for chain identities of businesses here, from a reputation registry (ERC-8004). agent is the
-- identity; place orders feedback as the chain does. proof is the order or payment that the file names.
CREATE TABLE feedback (
    id      TEXT PRIMARY KEY,
    agent   TEXT NOT NULL,
    client  TEXT NOT NULL,
    idx     INTEGER NOT NULL,
    block   INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    state   TEXT NOT NULL,
    reason  TEXT NOT NULL,
    rating  INTEGER NOT NULL,
    proof   TEXT NOT NULL,
    next_at INTEGER,
    tries   INTEGER NOT NULL,
    feed_id TEXT NOT NULL,
    doc     TEXT NOT NULL
);
CREATE UNIQUE INDEX feedback_given ON feedback (agent, client, idx);
CREATE INDEX feedback_listed ON feedback (agent, state, place);
CREATE INDEX feedback_due ON feedback (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX feedback_waiting ON feedback (agent, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX feedback_block ON feedback (block);
CREATE INDEX feedback_claims ON feedback (proof) WHERE proof <> '';

-- Orders and payments that a counted review has proved: each is good for one.
CREATE TABLE feedback_proof (
    name     TEXT PRIMARY KEY,
    feedback TEXT NOT NULL
);
CREATE INDEX feedback_proof_of ON feedback_proof (feedback);

-- The counted reviews of an identity; stars is the sum of their ratings, in hundredths of a point of 0 to 100.
CREATE TABLE feedback_sum (
    agent   TEXT PRIMARY KEY,
    reviews INTEGER NOT NULL,
    stars   INTEGER NOT NULL
);

-- Up to which block the events of a registry were read. An identity that is new here is read by itself,
-- up to where the registry is; then its block is NULL.
CREATE TABLE feedback_mark (
    registry TEXT PRIMARY KEY,
    block    INTEGER NOT NULL,
    hash     TEXT NOT NULL
);
CREATE TABLE feedback_agent (
    agent    TEXT PRIMARY KEY,
    registry TEXT NOT NULL,
    block    INTEGER
);
CREATE INDEX feedback_agent_behind ON feedback_agent (registry, block) WHERE block IS NOT NULL;
CREATE INDEX feedback_agent_of ON feedback_agent (registry, agent);

ALTER TABLE profile ADD COLUMN reviews INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN stars INTEGER NOT NULL DEFAULT 0;
