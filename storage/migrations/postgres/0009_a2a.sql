-- +goose Up

-- The id that an agent gave to its message of a thread (A2A messageId).
CREATE TABLE client_message (
	thread_id TEXT COLLATE "C" NOT NULL,
	n         BIGINT NOT NULL,
	client_id TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (thread_id, n)
);
