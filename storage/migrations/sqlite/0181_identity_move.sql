-- +goose Up

-- The last change of the owner of chain identities that this node knows, as the chain showed it.
CREATE TABLE identity_move (
	agent  TEXT    PRIMARY KEY,
	owner  TEXT    NOT NULL, -- since then; empty for none
	former TEXT    NOT NULL, -- before; empty when not known
	block  INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	exact  INTEGER NOT NULL CHECK (exact IN (0, 1)) -- the transfer was seen, and not only that there is another owner
) STRICT, WITHOUT ROWID;
CREATE INDEX identity_move_at ON identity_move (at);
