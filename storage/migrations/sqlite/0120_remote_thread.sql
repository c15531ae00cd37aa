-- +goose Up

-- The registrable domain of the server whose person began a thread, null for everyone else; counted while a thread is open, and by day.
ALTER TABLE thread ADD COLUMN origin TEXT;
CREATE INDEX thread_origin_open ON thread (handle, origin) WHERE origin IS NOT NULL AND state = 'open';
CREATE INDEX thread_origin_day ON thread (origin, created_at) WHERE origin IS NOT NULL;
CREATE INDEX thread_actor_day ON thread (writer, created_at) WHERE origin IS NOT NULL;
CREATE INDEX thread_actor ON thread (handle, writer, created_at) WHERE origin IS NOT NULL;

-- Whether everyone can read a message where it was written, when its author last changed it, and whether its author deleted it.
ALTER TABLE thread_message ADD COLUMN public INTEGER NOT NULL DEFAULT 0 CHECK (public IN (0, 1));
ALTER TABLE thread_message ADD COLUMN edited_at INTEGER;
ALTER TABLE thread_message ADD COLUMN withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1));

-- A thread with a person of another server: who can read the answers, and by which names their server knows the conversation.
CREATE TABLE remote_thread (
	thread_id    TEXT PRIMARY KEY,
	visibility   TEXT NOT NULL CHECK (visibility IN ('direct', 'unlisted', 'public')),
	context      TEXT NOT NULL,
	conversation TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The Note of a message in such a thread, of either side. One Note may be in the threads of several agents.
CREATE TABLE remote_message (
	uri        TEXT NOT NULL,
	thread_id  TEXT NOT NULL,
	n          INTEGER NOT NULL,
	visibility TEXT NOT NULL CHECK (visibility IN ('direct', 'unlisted', 'public')),
	revisions  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (uri, thread_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX remote_message_thread ON remote_message (thread_id, n);

-- The Note that tells a person of another server that an agent's contact policy does not admit the message: one a day.
CREATE TABLE remote_refusal (
	actor        TEXT PRIMARY KEY,
	origin       TEXT NOT NULL,
	id           TEXT NOT NULL,
	handle       TEXT NOT NULL,
	name         TEXT NOT NULL,
	text         TEXT NOT NULL,
	in_reply_to  TEXT NOT NULL,
	context      TEXT NOT NULL,
	conversation TEXT NOT NULL,
	until        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX remote_refusal_id ON remote_refusal (id);
CREATE INDEX remote_refusal_origin ON remote_refusal (origin, until);
CREATE INDEX remote_refusal_until ON remote_refusal (until);
CREATE INDEX remote_refusal_handle ON remote_refusal (handle);
