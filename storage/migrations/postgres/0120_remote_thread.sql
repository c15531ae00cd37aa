-- +goose Up

-- The registrable domain of the server whose person began a thread, null for everyone else; counted while a thread is open, and by day.
ALTER TABLE thread ADD COLUMN origin TEXT COLLATE "C";
CREATE INDEX thread_origin_open ON thread (handle, origin) WHERE origin IS NOT NULL AND state = 'open';
CREATE INDEX thread_origin_day ON thread (origin, created_at) WHERE origin IS NOT NULL;
CREATE INDEX thread_actor_day ON thread (writer, created_at) WHERE origin IS NOT NULL;
CREATE INDEX thread_actor ON thread (handle, writer, created_at) WHERE origin IS NOT NULL;

-- Whether everyone can read a message where it was written, when its author last changed it, and whether its author deleted it.
ALTER TABLE thread_message ADD COLUMN public BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE thread_message ADD COLUMN edited_at BIGINT;
ALTER TABLE thread_message ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT FALSE;

-- A thread with a person of another server: who can read the answers, and by which names their server knows the conversation.
CREATE TABLE remote_thread (
	thread_id    TEXT COLLATE "C" PRIMARY KEY,
	visibility   TEXT COLLATE "C" NOT NULL CHECK (visibility IN ('direct', 'unlisted', 'public')),
	context      TEXT COLLATE "C" NOT NULL,
	conversation TEXT COLLATE "C" NOT NULL
);

-- The Note of a message in such a thread, of either side. One Note may be in the threads of several agents.
CREATE TABLE remote_message (
	uri        TEXT COLLATE "C" NOT NULL,
	thread_id  TEXT COLLATE "C" NOT NULL,
	n          BIGINT NOT NULL,
	visibility TEXT COLLATE "C" NOT NULL CHECK (visibility IN ('direct', 'unlisted', 'public')),
	revisions  BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (uri, thread_id)
);
CREATE UNIQUE INDEX remote_message_thread ON remote_message (thread_id, n);

-- The Note that tells a person of another server that an agent's contact policy does not admit the message: one a day.
CREATE TABLE remote_refusal (
	actor        TEXT COLLATE "C" PRIMARY KEY,
	origin       TEXT COLLATE "C" NOT NULL,
	id           TEXT COLLATE "C" NOT NULL,
	handle       TEXT COLLATE "C" NOT NULL,
	name         TEXT COLLATE "C" NOT NULL,
	text         TEXT COLLATE "C" NOT NULL,
	in_reply_to  TEXT COLLATE "C" NOT NULL,
	context      TEXT COLLATE "C" NOT NULL,
	conversation TEXT COLLATE "C" NOT NULL,
	until        BIGINT NOT NULL
);
CREATE UNIQUE INDEX remote_refusal_id ON remote_refusal (id);
CREATE INDEX remote_refusal_origin ON remote_refusal (origin, until);
CREATE INDEX remote_refusal_until ON remote_refusal (until);
CREATE INDEX remote_refusal_handle ON remote_refusal (handle);
