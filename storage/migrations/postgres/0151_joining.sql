-- +goose Up

-- How each profile that joined by itself came. directory: the address of the key directory whose keys speak for it.
CREATE TABLE joined (
	handle       TEXT COLLATE "C" PRIMARY KEY,
	way          TEXT COLLATE "C" NOT NULL CHECK (way IN ('page', 'account', 'signed', 'proof')),
	at           BIGINT NOT NULL,
	directory    TEXT COLLATE "C" UNIQUE,
	identity     TEXT COLLATE "C",
	confirmed_at BIGINT,
	claim        BYTEA UNIQUE,
	claim_until  BIGINT NOT NULL DEFAULT 0,
	claimed_at   BIGINT
);
CREATE INDEX joined_unconfirmed ON joined (at) WHERE confirmed_at IS NULL;

-- What was begun to join, until it no longer counts: by which network, as a keyed hash.
CREATE TABLE join_try (
	id      TEXT COLLATE "C" PRIMARY KEY,
	network TEXT COLLATE "C" NOT NULL,
	known   BIGINT NOT NULL,
	until   BIGINT NOT NULL
);
CREATE INDEX join_try_network ON join_try (network, until);
CREATE INDEX join_try_until ON join_try (until, known);

-- Who typed a mail address on the page to join, until its reader confirms it. hash: of the secret in the browser; link: of that in the letter.
CREATE TABLE join_mail (
	hash       BYTEA PRIMARY KEY,
	link       BYTEA NOT NULL UNIQUE,
	code       BYTEA NOT NULL,
	mail       TEXT COLLATE "C" NOT NULL,
	draft      TEXT COLLATE "C" NOT NULL,
	invitation TEXT COLLATE "C" NOT NULL,
	language   TEXT COLLATE "C" NOT NULL,
	network    TEXT COLLATE "C" NOT NULL,
	tries      BIGINT NOT NULL DEFAULT 0,
	at         BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX join_mail_mail ON join_mail (mail, at);
CREATE INDEX join_mail_expires ON join_mail (expires_at);

-- Invitations: hash is of the code, account of who made it.
CREATE TABLE invitation (
	id         TEXT COLLATE "C" PRIMARY KEY,
	hash       BYTEA NOT NULL UNIQUE,
	account    TEXT COLLATE "C" NOT NULL,
	note       TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	used_at    BIGINT,
	became     TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX invitation_account ON invitation (account, created_at);
CREATE INDEX invitation_expires ON invitation (expires_at);
