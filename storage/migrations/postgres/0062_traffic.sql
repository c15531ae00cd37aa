-- +goose Up

-- What the node did within an hour, for the operators' charts: n of one kind. hour is
-- its beginning in Unix milliseconds. Rows are kept for 32 days.
CREATE TABLE traffic (
	hour BIGINT NOT NULL,
	what TEXT COLLATE "C" NOT NULL,
	n    BIGINT NOT NULL,
	PRIMARY KEY (hour, what)
);

-- The audit log by who did it, and by what was done.
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_action ON audit ((action || ''), id); -- || keeps audit_told for what is deleted
