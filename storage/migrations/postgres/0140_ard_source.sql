-- +goose Up

-- Directories of other makers that this node follows, and their entries as they have them.
CREATE TABLE ard_source (
	url        TEXT COLLATE "C" PRIMARY KEY,
	host       TEXT COLLATE "C" NOT NULL,
	registry   BOOLEAN          NOT NULL,
	tag        TEXT COLLATE "C" NOT NULL,
	refused    BIGINT           NOT NULL,
	checked_at BIGINT           NOT NULL,
	ok_at      BIGINT           NOT NULL,
	whole_at   BIGINT           NOT NULL,
	next_at    BIGINT           NOT NULL,
	failures   BIGINT           NOT NULL,
	last_error TEXT COLLATE "C" NOT NULL
);
CREATE TABLE ard_entry (
	seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	source     TEXT COLLATE "C" NOT NULL,
	identifier TEXT COLLATE "C" NOT NULL,
	publisher  TEXT COLLATE "C" NOT NULL,
	digest     TEXT COLLATE "C" NOT NULL,
	doc        TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX ard_entry_source ON ard_entry (source, identifier);
CREATE INDEX ard_entry_identifier ON ard_entry (identifier, seq);
CREATE TABLE ard_entry_word (
	seq   BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX ard_entry_word_words ON ard_entry_word USING gin (words);
