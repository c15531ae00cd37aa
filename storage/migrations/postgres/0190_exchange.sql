-- +goose Up

-- Tasks of A2A: exchanges in threads with agents. What a message is for its task is in exchange_part.
CREATE TABLE exchange (
	thread_id TEXT COLLATE "C" NOT NULL,
	first     BIGINT NOT NULL,
	party     TEXT COLLATE "C" NOT NULL,
	state     TEXT COLLATE "C" NOT NULL,
	moved     BIGINT NOT NULL,
	PRIMARY KEY (thread_id, first)
);
CREATE INDEX exchange_party ON exchange (party, moved, thread_id, first, state);
CREATE INDEX exchange_moved ON exchange (moved);

-- An agent's message that is no answer, and what it brings beside its text.
CREATE TABLE exchange_part (
	thread_id TEXT COLLATE "C" NOT NULL,
	n         BIGINT NOT NULL,
	mark      TEXT COLLATE "C" NOT NULL,
	artifact  TEXT COLLATE "C",
	PRIMARY KEY (thread_id, n)
);

-- The first message of the newest exchange of a thread that is a task, and its state; 0 for none.
ALTER TABLE thread ADD COLUMN task BIGINT NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN task_state TEXT COLLATE "C" NOT NULL DEFAULT '';
