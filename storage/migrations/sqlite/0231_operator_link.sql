-- +goose Up

-- One link makes the first operator: operator.
CREATE TABLE ticket_2 (
	hash       BLOB    PRIMARY KEY,
	purpose    TEXT    NOT NULL CHECK (purpose IN ('sign-in', 'notice-mail', 'account-mail', 'former-mail', 'operator')),
	account    TEXT    NOT NULL,
	handle     TEXT    NOT NULL,
	mail       TEXT    NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO ticket_2 (hash, purpose, account, handle, mail, expires_at) SELECT hash, purpose, account, handle, mail, expires_at FROM ticket;
DROP TABLE ticket;
ALTER TABLE ticket_2 RENAME TO ticket;
CREATE INDEX ticket_expires ON ticket (expires_at);
CREATE INDEX ticket_mail ON ticket (mail, purpose, expires_at);
CREATE INDEX ticket_handle ON ticket (handle, purpose, expires_at);
CREATE INDEX ticket_account ON ticket (account, purpose, expires_at);

-- Whether there is an operator.
CREATE INDEX account_operator ON account (id) WHERE role = 'operator';
