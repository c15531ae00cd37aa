-- +goose Up

-- How each profile that joined by itself came. directory: the address of the key directory whose keys speak for it.
CREATE TABLE joined (
	handle       TEXT PRIMARY KEY,
	way          TEXT NOT NULL CHECK (way IN ('page', 'account', 'signed', 'proof')),
	at           INTEGER NOT NULL,
	directory    TEXT UNIQUE,
	identity     TEXT,
	confirmed_at INTEGER,
	claim        BLOB UNIQUE,
	claim_until  INTEGER NOT NULL DEFAULT 0,
	claimed_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX joined_unconfirmed ON joined (at) WHERE confirmed_at IS NULL;

-- What was begun to join, until it no longer counts: by which network, as a keyed hash.
CREATE TABLE join_try (
	id      TEXT PRIMARY KEY,
	network TEXT NOT NULL,
	known   INTEGER NOT NULL,
	until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX join_try_network ON join_try (network, until);
CREATE INDEX join_try_until ON join_try (until, known);

-- Who typed a mail address on the page to join, until its reader confirms it. hash: of the secret in the browser; link: of that in the letter.
CREATE TABLE join_mail (
	hash       BLOB PRIMARY KEY,
	link       BLOB NOT NULL UNIQUE,
	code       BLOB NOT NULL,
	mail       TEXT NOT NULL,
	draft      TEXT NOT NULL,
	invitation TEXT NOT NULL,
	language   TEXT NOT NULL,
	network    TEXT NOT NULL,
	tries      INTEGER NOT NULL DEFAULT 0,
	at         INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX join_mail_mail ON join_mail (mail, at);
CREATE INDEX join_mail_expires ON join_mail (expires_at);

-- Invitations: hash is of the code, account of who made it.
CREATE TABLE invitation (
	id         TEXT PRIMARY KEY,
	hash       BLOB NOT NULL UNIQUE,
	account    TEXT NOT NULL,
	note       TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	used_at    INTEGER,
	became     TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX invitation_account ON invitation (account, created_at);
CREATE INDEX invitation_expires ON invitation (expires_at);
