-- +goose Up

ALTER TABLE profile ADD COLUMN listed BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE profile ADD COLUMN alive TEXT COLLATE "C" NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead'));
ALTER TABLE profile ADD COLUMN last_seen_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN joined_at BIGINT NOT NULL DEFAULT 0;
-- What the feed has told of a business it does not tell again.
UPDATE profile SET joined_at = created_at WHERE handle IN (SELECT subject_id FROM feed WHERE type = 'merchant_joined');
ALTER TABLE profile ADD COLUMN pos BIGINT;
CREATE INDEX profile_unplaced ON profile (seq) WHERE listed AND pos IS NULL;

-- Versions of listed profiles, ordered as lists show them: pos is made of
-- liveness and freshness. A version holds from the number since to before the
-- number until of the clock, so that a walk reads the lists as they were when it
-- began. See rank.go. words are the words and facets of the version.
CREATE TABLE profile_rank (
	pos       BIGINT PRIMARY KEY,
	seq       BIGINT NOT NULL,
	since     BIGINT NOT NULL,
	until     BIGINT NOT NULL,
	closed_at BIGINT,
	words     TSVECTOR NOT NULL
);
CREATE INDEX profile_rank_closed ON profile_rank (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX profile_rank_words ON profile_rank USING gin (words) WITH (gin_pending_list_limit = 512);
CREATE TABLE profile_clock (
	id     INTEGER PRIMARY KEY CHECK (id = 1),
	now    BIGINT NOT NULL,
	pruned BIGINT NOT NULL
);
INSERT INTO profile_clock (id, now, pruned) VALUES (1, 0, 0);
DROP TABLE profile_word;

-- opens and closes are the span of open time that was running or coming up when
-- it was last looked at; both 0 where the hours are unknown.
CREATE TABLE merchant (
	seq        BIGINT PRIMARY KEY,
	record     TEXT COLLATE "C" NOT NULL,
	opens      BIGINT NOT NULL,
	closes     BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE INDEX merchant_opens ON merchant (opens, seq) WHERE closes > 0;
CREATE INDEX merchant_closes ON merchant (closes) WHERE closes > 0;

-- Items keep their id while they are away: place is NULL then.
CREATE TABLE merchant_item (
	seq       BIGINT NOT NULL,
	sku       TEXT COLLATE "C" NOT NULL,
	id        TEXT COLLATE "C" NOT NULL UNIQUE,
	place     BIGINT,
	doc       TEXT COLLATE "C" NOT NULL,
	currency  TEXT COLLATE "C",
	minor     BIGINT,
	listed_at BIGINT NOT NULL DEFAULT 0,
	away_at   BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (seq, sku)
);
