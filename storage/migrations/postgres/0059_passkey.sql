-- +goose Up

-- A passkey of an account (WebAuthn): credential is the id that its authenticator gave
-- it, domain the one that it is for, public_key a COSE key. suspect: its counter went
-- back, so that it signs nobody in any more.
CREATE TABLE passkey (
	id              TEXT COLLATE "C" PRIMARY KEY,
	credential      BYTEA   NOT NULL UNIQUE,
	account         TEXT COLLATE "C" NOT NULL,
	domain          TEXT COLLATE "C" NOT NULL,
	name            TEXT COLLATE "C" NOT NULL,
	public_key      BYTEA   NOT NULL,
	sign_count      BIGINT  NOT NULL,
	backup_eligible BOOLEAN NOT NULL,
	backed_up       BOOLEAN NOT NULL,
	transports      TEXT COLLATE "C" NOT NULL,
	suspect         BOOLEAN NOT NULL,
	created_at      BIGINT  NOT NULL,
	last_used_at    BIGINT
);
CREATE INDEX passkey_account ON passkey (account, id);

-- A recovery code signs in to its account once. Only hashes are stored.
CREATE TABLE recovery_code (
	hash    BYTEA  PRIMARY KEY,
	account TEXT COLLATE "C" NOT NULL,
	made_at BIGINT NOT NULL
);
CREATE INDEX recovery_code_account ON recovery_code (account, made_at);

-- Who owns a chain identity may sign in with that Ethereum account.
CREATE INDEX enrolment_owner ON enrolment (owner, handle);
