-- +goose Up

-- The profile takes meeting requests.
ALTER TABLE profile ADD COLUMN meetings BOOLEAN NOT NULL DEFAULT FALSE;

-- When a person takes meetings, and how: doc holds the rules as their owner wrote
-- them.
CREATE TABLE meeting_rules (
	handle     TEXT COLLATE "C" PRIMARY KEY,
	doc        TEXT COLLATE "C" NOT NULL,
	updated_at BIGINT  NOT NULL
);
