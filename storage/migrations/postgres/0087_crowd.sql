-- +goose Up

-- What happened at a place, a profile or the node (handle ''), in parts of ten minutes, for a day.
CREATE TABLE crowd (
	handle TEXT COLLATE "C" NOT NULL,
	what   TEXT COLLATE "C" NOT NULL,
	at     BIGINT NOT NULL,
	n      BIGINT NOT NULL,
	until  BIGINT NOT NULL,
	PRIMARY KEY (handle, what, at)
);
CREATE INDEX crowd_until ON crowd (until);
