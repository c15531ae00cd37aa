-- +goose Up

-- Browsers that are sent notices by Web Push. reader is an account, whose devices do not end, or a name of the reader of one thread,
-- bid or meeting request (see news). endpoint, p256dh and auth are of the subscription (RFC 8030, RFC 8291).
CREATE TABLE device (
	id         TEXT COLLATE "C" PRIMARY KEY,
	reader     TEXT COLLATE "C" NOT NULL,
	endpoint   TEXT COLLATE "C" NOT NULL,
	p256dh     BYTEA NOT NULL,
	auth       BYTEA NOT NULL,
	language   TEXT COLLATE "C" NOT NULL,
	program    TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	ends_at    BIGINT
);
CREATE UNIQUE INDEX device_reader ON device (reader, endpoint);
CREATE INDEX device_endpoint ON device (endpoint);
CREATE INDEX device_ends ON device (ends_at) WHERE ends_at IS NOT NULL;
