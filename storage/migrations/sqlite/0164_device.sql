-- +goose Up

-- Browsers that are sent notices by Web Push. reader is an account, whose devices do not end, or a name of the reader of one thread,
-- bid or meeting request (see news). endpoint, p256dh and auth are of the subscription (RFC 8030, RFC 8291).
CREATE TABLE device (
	id         TEXT PRIMARY KEY,
	reader     TEXT NOT NULL,
	endpoint   TEXT NOT NULL,
	p256dh     BLOB NOT NULL,
	auth       BLOB NOT NULL,
	language   TEXT NOT NULL,
	program    TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	ends_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX device_reader ON device (reader, endpoint);
CREATE INDEX device_endpoint ON device (endpoint);
CREATE INDEX device_ends ON device (ends_at) WHERE ends_at IS NOT NULL;
