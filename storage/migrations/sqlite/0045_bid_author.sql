-- +goose Up

-- The bids in the feed, this node's and those of other nodes, under every name
-- by which an operator may block their author (kind:value), and, for a bid of
-- another node, under its ActivityPub id (uri:…).
CREATE TABLE bid_author (
	name       TEXT NOT NULL,
	subject_id TEXT NOT NULL,
	PRIMARY KEY (name, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bid_network ON bid (bidder) WHERE paid AND anonymous;
