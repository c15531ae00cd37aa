-- +goose Up

-- Tasks of A2A: exchanges in threads with agents. What a message is for its task is in exchange_part.
CREATE TABLE exchange (
	thread_id TEXT    NOT NULL,
	first     INTEGER NOT NULL,
	party     TEXT    NOT NULL,
	state     TEXT    NOT NULL,
	moved     INTEGER NOT NULL,
	PRIMARY KEY (thread_id, first)
) STRICT, WITHOUT ROWID;
CREATE INDEX exchange_party ON exchange (party, moved, thread_id, first, state);
CREATE INDEX exchange_moved ON exchange (moved);

-- An agent's message that is no answer, and what it brings beside its text.
CREATE TABLE exchange_part (
	thread_id TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	mark      TEXT    NOT NULL,
	artifact  TEXT,
	PRIMARY KEY (thread_id, n)
) STRICT, WITHOUT ROWID;

-- The first message of the newest exchange of a thread that is a task, and its state; 0 for none.
ALTER TABLE thread ADD COLUMN task INTEGER NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN task_state TEXT NOT NULL DEFAULT '';
