-- +goose Up

-- writer is who began the thread, as limits and blocks know it: an identity,
-- account, profile or key by name, a network as a hash that is this agent's own.
-- writer_handle is the profile of this node that began it, null when it is gone.
-- messages numbers the messages; unread and unseen count those of the writer and
-- of the agent since the other side last wrote.
CREATE TABLE thread (
	id         TEXT COLLATE "C" PRIMARY KEY,
	handle     TEXT COLLATE "C" NOT NULL,
	kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('question', 'quote_request', 'support')),
	state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('open', 'answered', 'closed')),
	writer     TEXT COLLATE "C" NOT NULL,
	author     TEXT COLLATE "C" NOT NULL,
	token_hash BYTEA   NOT NULL,
	visitor    BYTEA,
	callback   TEXT COLLATE "C" NOT NULL,
	messages   BIGINT NOT NULL,
	unread     BIGINT NOT NULL,
	unseen     BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	closed_at  BIGINT,
	closed_by  TEXT COLLATE "C" NOT NULL DEFAULT '',
	writer_handle TEXT COLLATE "C"
);
-- Lists of one agent are ordered by expressions, each by that of its index
-- (onesOwn): were it the id itself, PostgreSQL would walk over everybody's rows
-- where one agent has many.
CREATE INDEX thread_handle ON thread (handle, (id || ''));
CREATE INDEX thread_state ON thread (handle, state, ('' || id));
CREATE INDEX thread_open ON thread (handle, writer) WHERE state = 'open';
CREATE INDEX thread_writer_handle ON thread (writer_handle) WHERE writer_handle IS NOT NULL;

CREATE TABLE thread_message (
	thread_id TEXT COLLATE "C" NOT NULL,
	n         BIGINT NOT NULL,
	id        TEXT COLLATE "C" NOT NULL,
	side      TEXT COLLATE "C" NOT NULL CHECK (side IN ('writer', 'agent')),
	author    TEXT COLLATE "C" NOT NULL,
	text      TEXT COLLATE "C" NOT NULL,
	at        BIGINT NOT NULL,
	PRIMARY KEY (thread_id, n)
);

-- A reply on its way to the address that the writer gave; id is the message's.
CREATE TABLE callback (
	id         TEXT COLLATE "C" PRIMARY KEY,
	handle     TEXT COLLATE "C" NOT NULL,
	thread_id  TEXT COLLATE "C" NOT NULL,
	n          BIGINT NOT NULL,
	url        TEXT COLLATE "C" NOT NULL,
	state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'done', 'gone', 'refused', 'failed')),
	attempts   BIGINT NOT NULL,
	tries      BIGINT NOT NULL,
	status     BIGINT NOT NULL,
	last_error TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	next_at    BIGINT NOT NULL,
	until      BIGINT NOT NULL
);
CREATE INDEX callback_handle ON callback (handle, (id || ''));
CREATE INDEX callback_state ON callback (handle, state, ('' || id));
CREATE INDEX callback_thread ON callback (thread_id, (id || ''));

-- Writers that an agent does not want to hear of, each by every name it is
-- known by. writer is the thread's.
CREATE TABLE contact_block (
	id        TEXT COLLATE "C" PRIMARY KEY,
	handle    TEXT COLLATE "C" NOT NULL,
	writer    TEXT COLLATE "C" NOT NULL,
	author    TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	note      TEXT COLLATE "C" NOT NULL,
	at        BIGINT NOT NULL
);
CREATE UNIQUE INDEX contact_block_writer ON contact_block (handle, writer);
CREATE INDEX contact_block_handle ON contact_block (handle, (id || ''));
CREATE TABLE contact_block_name (
	handle   TEXT COLLATE "C" NOT NULL,
	name     TEXT COLLATE "C" NOT NULL,
	block_id TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (handle, name, block_id)
);
CREATE INDEX contact_block_name_id ON contact_block_name (block_id);
