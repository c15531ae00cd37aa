-- +goose Up

ALTER TABLE profile ADD COLUMN listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1));
ALTER TABLE profile ADD COLUMN alive TEXT NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead'));
ALTER TABLE profile ADD COLUMN last_seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN joined_at INTEGER NOT NULL DEFAULT 0;
-- What the feed has told of a business it does not tell again.
UPDATE profile SET joined_at = created_at WHERE handle IN (SELECT subject_id FROM feed WHERE type = 'merchant_joined');
ALTER TABLE profile ADD COLUMN pos INTEGER;
CREATE INDEX profile_unplaced ON profile (seq) WHERE listed AND pos IS NULL;

-- Versions of listed profiles, ordered as lists show them: pos is made of
-- liveness and freshness. A version holds from the number since to before the
-- number until of the clock, so that a walk reads the lists as they were when it
-- began. See rank.go.
CREATE TABLE profile_rank (
	pos       INTEGER PRIMARY KEY,
	seq       INTEGER NOT NULL,
	since     INTEGER NOT NULL,
	until     INTEGER NOT NULL,
	closed_at INTEGER
) STRICT;
CREATE INDEX profile_rank_closed ON profile_rank (closed_at) WHERE closed_at IS NOT NULL;
CREATE TABLE profile_clock (
	id     INTEGER PRIMARY KEY CHECK (id = 1),
	now    INTEGER NOT NULL,
	pruned INTEGER NOT NULL
) STRICT;
INSERT INTO profile_clock (id, now, pruned) VALUES (1, 0, 0);

-- Words and facets of the versions, by pos.
DROP TABLE profile_word;
CREATE VIRTUAL TABLE profile_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- opens and closes are the span of open time that was running or coming up when
-- it was last looked at; both 0 where the hours are unknown.
CREATE TABLE merchant (
	seq        INTEGER PRIMARY KEY,
	record     TEXT    NOT NULL,
	opens      INTEGER NOT NULL,
	closes     INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX merchant_opens ON merchant (opens, seq) WHERE closes > 0;
CREATE INDEX merchant_closes ON merchant (closes) WHERE closes > 0;

-- Items keep their id while they are away: place is NULL then.
CREATE TABLE merchant_item (
	seq       INTEGER NOT NULL,
	sku       TEXT    NOT NULL,
	id        TEXT    NOT NULL UNIQUE,
	place     INTEGER,
	doc       TEXT    NOT NULL,
	currency  TEXT,
	minor     INTEGER,
	listed_at INTEGER NOT NULL DEFAULT 0,
	away_at   INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (seq, sku)
) STRICT, WITHOUT ROWID;
