-- +goose Up

-- The tree of a followed log: the last checkpoint that was accepted, and up to which number entries are compared with the tree.
CREATE TABLE followed_tree (
	board      TEXT COLLATE "C" PRIMARY KEY,
	epoch      TEXT COLLATE "C" NOT NULL,
	size       BIGINT NOT NULL,
	proved     BIGINT NOT NULL,
	checkpoint BYTEA NOT NULL
);

-- Conflicts of the kind tree.
ALTER TABLE log_conflict DROP CONSTRAINT log_conflict_kind_check;
ALTER TABLE log_conflict ADD CONSTRAINT log_conflict_kind_check CHECK (kind IN ('fork', 'fallback', 'tree'));
ALTER TABLE log_report DROP CONSTRAINT log_report_kind_check;
ALTER TABLE log_report ADD CONSTRAINT log_report_kind_check CHECK (kind IN ('fork', 'fallback', 'tree'));
