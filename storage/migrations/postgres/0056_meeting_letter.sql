-- +goose Up

-- Mail to the mailbox came back for good.
ALTER TABLE meeting_mailbox ADD COLUMN bounced BOOLEAN NOT NULL DEFAULT FALSE;

-- Invitations as they are sent, until they are: an attempt sends what the one
-- before sent. sealed is encrypted, since their links act for the requester.
CREATE TABLE meeting_letter (
	id      TEXT COLLATE "C" PRIMARY KEY,
	sealed  BYTEA  NOT NULL,
	ends_at BIGINT NOT NULL
);
CREATE INDEX meeting_letter_end ON meeting_letter (ends_at);
