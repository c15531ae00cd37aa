-- +goose Up

-- Meeting requests. shown says that the person may see it: its mailbox was
-- confirmed, or the node sends no mail. mailbox is a keyed hash. due_at is when it
-- expires, is done or is deleted by itself. mail_until is when the address in doc
-- is deleted; null once it is.
CREATE TABLE meeting (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('unconfirmed', 'submitted', 'proposed', 'approved', 'declined', 'withdrawn', 'expired', 'cancelled', 'done', 'no_show')),
	shown      INTEGER NOT NULL CHECK (shown IN (0, 1)),
	starts_at  INTEGER NOT NULL,
	ends_at    INTEGER NOT NULL CHECK (ends_at > starts_at),
	requester  TEXT    NOT NULL,
	mailbox    BLOB    NOT NULL,
	token_hash BLOB    NOT NULL,
	asked_at   INTEGER NOT NULL,
	due_at     INTEGER,
	mail_until INTEGER,
	moved_at   INTEGER NOT NULL,
	moves      INTEGER NOT NULL,
	sequence   INTEGER NOT NULL,
	doc        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX meeting_token ON meeting (token_hash);
CREATE INDEX meeting_owner ON meeting (handle, (id || '')) WHERE shown;
CREATE INDEX meeting_state ON meeting (handle, state, ('' || id)) WHERE shown;
CREATE INDEX meeting_left ON meeting (handle, id);
CREATE INDEX meeting_time ON meeting (handle, starts_at) WHERE state IN ('submitted', 'approved');
CREATE INDEX meeting_mailbox_waits ON meeting (mailbox, handle) WHERE state IN ('unconfirmed', 'submitted', 'proposed');
CREATE INDEX meeting_requester_waits ON meeting (requester, handle) WHERE state IN ('unconfirmed', 'submitted', 'proposed');
CREATE INDEX meeting_requester ON meeting (requester, asked_at);
CREATE INDEX meeting_asked ON meeting (handle, asked_at);
CREATE INDEX meeting_over ON meeting (moved_at) WHERE state IN ('declined', 'withdrawn', 'expired', 'cancelled', 'done', 'no_show');
CREATE INDEX meeting_mail ON meeting (mail_until) WHERE mail_until IS NOT NULL;

-- What limits mail about meetings to one mailbox, by a keyed hash of it. sent is
-- how many confirmation mails it got since a link was used last.
CREATE TABLE meeting_mailbox (
	hash    BLOB    PRIMARY KEY,
	sent_at INTEGER NOT NULL,
	sent    INTEGER NOT NULL,
	stopped INTEGER NOT NULL CHECK (stopped IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_mailbox_sent ON meeting_mailbox (sent_at) WHERE NOT stopped;
