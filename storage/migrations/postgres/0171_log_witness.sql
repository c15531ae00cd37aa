-- +goose Up

-- What nodes that follow our board cosigned last of the tree of its log.
CREATE TABLE log_witness (
	host     TEXT COLLATE "C" PRIMARY KEY,
	epoch    TEXT COLLATE "C" NOT NULL,
	size     BIGINT NOT NULL,
	root     BYTEA NOT NULL,
	line     TEXT COLLATE "C" NOT NULL,
	asked_at BIGINT NOT NULL,
	until    BIGINT NOT NULL
);
CREATE INDEX log_witness_until ON log_witness (until);
