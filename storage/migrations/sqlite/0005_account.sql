-- +goose Up

-- An account is somebody's sign-in. mail is an address that was confirmed,
-- asked_mail one that is to be.
CREATE TABLE account (
	id         TEXT    PRIMARY KEY,
	name       TEXT    NOT NULL,
	role       TEXT    NOT NULL CHECK (role IN ('owner', 'operator')),
	mail       TEXT    UNIQUE,
	asked_mail TEXT    NOT NULL DEFAULT '',
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A profile belongs to one account at most; an account has any number.
CREATE TABLE account_profile (
	handle  TEXT    PRIMARY KEY,
	account TEXT    NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX account_profile_account ON account_profile (account, handle);

-- Of secrets only hashes are stored.
CREATE TABLE session (
	id           TEXT    PRIMARY KEY,
	hash         BLOB    NOT NULL UNIQUE,
	account      TEXT    NOT NULL,
	program      TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_account ON session (account, id);
CREATE INDEX session_expires ON session (expires_at);

-- A one-time secret that was handed out: a sign-in link, or by mail
-- the proof that an address can be read.
CREATE TABLE ticket (
	hash       BLOB    PRIMARY KEY,
	purpose    TEXT    NOT NULL CHECK (purpose IN ('sign-in', 'notice-mail', 'account-mail', 'former-mail')),
	account    TEXT    NOT NULL,
	handle     TEXT    NOT NULL,
	mail       TEXT    NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_expires ON ticket (expires_at);
CREATE INDEX ticket_account ON ticket (account);

-- Where notices about a profile go.
CREATE TABLE notify (
	handle     TEXT    PRIMARY KEY,
	mail       TEXT    NOT NULL,
	confirmed  INTEGER NOT NULL CHECK (confirmed IN (0, 1)),
	webhook    TEXT    NOT NULL,
	events     TEXT    NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The tokens there are name an account that nobody kept. Those of one profile
-- get one account, and may do what an owner may for that profile.
DELETE FROM api_token WHERE handle NOT IN (SELECT handle FROM profile);
INSERT INTO account (id, name, role, mail, created_at)
	SELECT min(t.account), COALESCE((SELECT json_extract(p.draft, '$.name') FROM profile p WHERE p.handle = t.handle), t.handle), 'owner', NULL, min(t.created_at)
	FROM api_token t GROUP BY t.handle;
INSERT INTO account_profile (handle, account, at) SELECT handle, min(account), min(created_at) FROM api_token GROUP BY handle;
UPDATE api_token SET account = (SELECT a.account FROM account_profile a WHERE a.handle = api_token.handle),
	scopes = '["post","profile","keys","inbox","notify","archive"]' WHERE scopes IN ('[]', 'null');
CREATE INDEX api_token_account ON api_token (account, id);
CREATE INDEX api_token_ended ON api_token ((COALESCE(revoked_at, expires_at)));
