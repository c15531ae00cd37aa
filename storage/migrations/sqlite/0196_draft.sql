-- +goose Up

-- Writes without a proof of work that wait for a person to confirm them by a link. hash is of the secret of the program that sent one, link of that in
-- the person's link; body and result are sealed.
CREATE TABLE draft (
	hash    BLOB    PRIMARY KEY,
	link    BLOB    NOT NULL UNIQUE,
	network TEXT    NOT NULL,
	op      TEXT    NOT NULL,
	digest  BLOB    NOT NULL,
	body    BLOB    NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'refused')),
	result  BLOB    NOT NULL,
	ends_at INTEGER NOT NULL
) STRICT;
CREATE INDEX draft_network ON draft (network, ends_at);
CREATE INDEX draft_ends ON draft (ends_at);
