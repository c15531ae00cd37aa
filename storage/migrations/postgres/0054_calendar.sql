-- +goose Up

-- Accounts at calendar servers of persons that take meetings. sealed is the
-- password. doc has the calendars that were found, and which are read and written.
CREATE TABLE calendar_account (
	id TEXT COLLATE "C" PRIMARY KEY,
	handle TEXT COLLATE "C" NOT NULL,
	sealed BYTEA NOT NULL,
	doc TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE INDEX calendar_account_handle ON calendar_account (handle, id);

-- Busy times of an account whose calendars are read, packed. read_at is when they
-- were read last; 0 for never.
CREATE TABLE calendar_busy (
	account TEXT COLLATE "C" PRIMARY KEY,
	handle TEXT COLLATE "C" NOT NULL,
	read_at BIGINT NOT NULL,
	spans BYTEA NOT NULL
);
CREATE INDEX calendar_busy_handle ON calendar_busy (handle);

-- Which event of an approved meeting is on which calendar, until 31 days after the
-- meeting.
CREATE TABLE meeting_event (
	meeting TEXT COLLATE "C" PRIMARY KEY,
	handle TEXT COLLATE "C" NOT NULL,
	account TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'written', 'removed', 'failed')),
	until BIGINT NOT NULL,
	doc TEXT COLLATE "C" NOT NULL
);
CREATE INDEX meeting_event_handle ON meeting_event (handle);
CREATE INDEX meeting_event_account ON meeting_event (account, state, meeting);
CREATE INDEX meeting_event_until ON meeting_event (until);

-- The address of a person's feed of meetings, by the hash of its secret.
CREATE TABLE meeting_feed (
	handle TEXT COLLATE "C" PRIMARY KEY,
	hash BYTEA NOT NULL UNIQUE,
	made_at BIGINT NOT NULL
);
CREATE INDEX meeting_agreed ON meeting (handle, ends_at) WHERE state IN ('approved', 'done', 'no_show', 'cancelled');
