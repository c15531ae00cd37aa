-- +goose Up

CREATE TABLE complaint (
	id          TEXT COLLATE "C" PRIMARY KEY,
	state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('received', 'acknowledged', 'resolved')),
	due_at      BIGINT           NOT NULL,
	complainant TEXT COLLATE "C" NOT NULL,
	known       BOOLEAN          NOT NULL,
	token_hash  BYTEA            NOT NULL,
	created_at  BIGINT           NOT NULL,
	until       BIGINT,
	doc         TEXT COLLATE "C" NOT NULL
);
CREATE INDEX complaint_due ON complaint (due_at, id) WHERE state <> 'resolved';
CREATE INDEX complaint_open ON complaint (known) WHERE state <> 'resolved';
CREATE INDEX complaint_over ON complaint (id) WHERE state = 'resolved';
CREATE INDEX complaint_of ON complaint (complainant, created_at);
CREATE INDEX complaint_until ON complaint (until) WHERE until IS NOT NULL;
