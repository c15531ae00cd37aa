-- +goose Up

-- One counter for what is followed as it happens. It is raised at the end of
-- the transaction that writes the rows, so that rows become visible in the order
-- of their numbers: whoever has read up to a number has missed nothing below it.
CREATE TABLE tally (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	head BIGINT NOT NULL
);

ALTER TABLE feed ADD COLUMN n BIGINT NOT NULL DEFAULT 0;
UPDATE feed SET n = r.n FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM feed) r WHERE r.seq = feed.seq;
CREATE UNIQUE INDEX feed_n ON feed (n);
INSERT INTO tally (one, head) SELECT 1, count(*) FROM feed;

-- What somebody will want to know when he comes back. An event has one number
-- and a row for each name that its reader may go by.
CREATE TABLE news (
	reader TEXT COLLATE "C" NOT NULL,
	n      BIGINT NOT NULL,
	kind   TEXT COLLATE "C" NOT NULL,
	ref    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (reader, n)
);
-- What is old is found by an expression: an index of n itself would be taken for
-- the news of one reader.
CREATE INDEX news_n ON news ((n + 0));

-- The last number at a time: what is older than a time has no greater one.
CREATE TABLE news_mark (
	n  BIGINT PRIMARY KEY,
	at BIGINT NOT NULL
);

-- The news of a thread are asked for by its read token.
CREATE INDEX thread_token ON thread (token_hash);
