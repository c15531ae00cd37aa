-- +goose Up

-- Accounts at calendar servers of persons that take meetings. sealed is the
-- password. doc has the calendars that were found, and which are read and written.
CREATE TABLE calendar_account (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	sealed     BLOB    NOT NULL,
	doc        TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX calendar_account_handle ON calendar_account (handle, id);

-- Busy times of an account whose calendars are read, packed. read_at is when they
-- were read last; 0 for never.
CREATE TABLE calendar_busy (
	account TEXT    PRIMARY KEY,
	handle  TEXT    NOT NULL,
	read_at INTEGER NOT NULL,
	spans   BLOB    NOT NULL
) STRICT;
CREATE INDEX calendar_busy_handle ON calendar_busy (handle);

-- Which event of an approved meeting is on which calendar, until 31 days after the
-- meeting.
CREATE TABLE meeting_event (
	meeting TEXT    PRIMARY KEY,
	handle  TEXT    NOT NULL,
	account TEXT    NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('pending', 'written', 'removed', 'failed')),
	until   INTEGER NOT NULL,
	doc     TEXT    NOT NULL
) STRICT;
CREATE INDEX meeting_event_handle ON meeting_event (handle);
CREATE INDEX meeting_event_account ON meeting_event (account, state, meeting);
CREATE INDEX meeting_event_until ON meeting_event (until);

-- The address of a person's feed of meetings, by the hash of its secret.
CREATE TABLE meeting_feed (
	handle  TEXT    PRIMARY KEY,
	hash    BLOB    NOT NULL UNIQUE,
	made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_agreed ON meeting (handle, ends_at) WHERE state IN ('approved', 'done', 'no_show', 'cancelled');
