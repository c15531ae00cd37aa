-- +goose Up

-- writer is who began the thread, as limits and blocks know it: an identity,
-- account, profile or key by name, a network as a hash that is this agent's own.
-- writer_handle is the profile of this node that began it, null when it is gone.
-- messages numbers the messages; unread and unseen count those of the writer and
-- of the agent since the other side last wrote.
CREATE TABLE thread (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	kind       TEXT    NOT NULL CHECK (kind IN ('question', 'quote_request', 'support')),
	state      TEXT    NOT NULL CHECK (state IN ('open', 'answered', 'closed')),
	writer     TEXT    NOT NULL,
	author     TEXT    NOT NULL,
	token_hash BLOB    NOT NULL,
	visitor    BLOB,
	callback   TEXT    NOT NULL,
	messages   INTEGER NOT NULL,
	unread     INTEGER NOT NULL,
	unseen     INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	closed_at  INTEGER,
	closed_by  TEXT    NOT NULL DEFAULT '',
	writer_handle TEXT
) STRICT, WITHOUT ROWID;
-- Lists of one agent are ordered by expressions, each by that of its index
-- (onesOwn): were it the id itself, PostgreSQL would walk over everybody's rows
-- where one agent has many.
CREATE INDEX thread_handle ON thread (handle, (id || ''));
CREATE INDEX thread_state ON thread (handle, state, ('' || id));
CREATE INDEX thread_open ON thread (handle, writer) WHERE state = 'open';
CREATE INDEX thread_writer_handle ON thread (writer_handle) WHERE writer_handle IS NOT NULL;

CREATE TABLE thread_message (
	thread_id TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	id        TEXT    NOT NULL,
	side      TEXT    NOT NULL CHECK (side IN ('writer', 'agent')),
	author    TEXT    NOT NULL,
	text      TEXT    NOT NULL,
	at        INTEGER NOT NULL,
	PRIMARY KEY (thread_id, n)
) STRICT, WITHOUT ROWID;

-- A reply on its way to the address that the writer gave; id is the message's.
CREATE TABLE callback (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	thread_id  TEXT    NOT NULL,
	n          INTEGER NOT NULL,
	url        TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'gone', 'refused', 'failed')),
	attempts   INTEGER NOT NULL,
	tries      INTEGER NOT NULL,
	status     INTEGER NOT NULL,
	last_error TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	next_at    INTEGER NOT NULL,
	until      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX callback_handle ON callback (handle, (id || ''));
CREATE INDEX callback_state ON callback (handle, state, ('' || id));
CREATE INDEX callback_thread ON callback (thread_id, (id || ''));

-- Writers that an agent does not want to hear of, each by every name it is
-- known by. writer is the thread's.
CREATE TABLE contact_block (
	id        TEXT    PRIMARY KEY,
	handle    TEXT    NOT NULL,
	writer    TEXT    NOT NULL,
	author    TEXT    NOT NULL,
	thread_id TEXT    NOT NULL,
	note      TEXT    NOT NULL,
	at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX contact_block_writer ON contact_block (handle, writer);
CREATE INDEX contact_block_handle ON contact_block (handle, (id || ''));
CREATE TABLE contact_block_name (
	handle   TEXT NOT NULL,
	name     TEXT NOT NULL,
	block_id TEXT NOT NULL,
	PRIMARY KEY (handle, name, block_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_block_name_id ON contact_block_name (block_id);
