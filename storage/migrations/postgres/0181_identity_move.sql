-- +goose Up

-- The last change of the owner of chain identities that this node knows, as the chain showed it.
CREATE TABLE identity_move (
	agent  TEXT COLLATE "C" PRIMARY KEY,
	owner  TEXT COLLATE "C" NOT NULL, -- since then; empty for none
	former TEXT COLLATE "C" NOT NULL, -- before; empty when not known
	block  BIGINT  NOT NULL,
	at     BIGINT  NOT NULL,
	exact  BOOLEAN NOT NULL -- the transfer was seen, and not only that there is another owner
);
CREATE INDEX identity_move_at ON identity_move (at);
