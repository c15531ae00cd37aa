-- +goose Up

-- Mail to the mailbox came back for good.
ALTER TABLE meeting_mailbox ADD COLUMN bounced INTEGER NOT NULL DEFAULT 0 CHECK (bounced IN (0, 1));

-- Invitations as they are sent, until they are: an attempt sends what the one
-- before sent. sealed is encrypted, since their links act for the requester.
CREATE TABLE meeting_letter (
	id      TEXT    PRIMARY KEY,
	sealed  BLOB    NOT NULL,
	ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_letter_end ON meeting_letter (ends_at);
