-- +goose Up

-- The profile takes meeting requests.
ALTER TABLE profile ADD COLUMN meetings INTEGER NOT NULL DEFAULT 0 CHECK (meetings IN (0, 1));

-- When a person takes meetings, and how: doc holds the rules as their owner wrote
-- them.
CREATE TABLE meeting_rules (
	handle     TEXT    PRIMARY KEY,
	doc        TEXT    NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
