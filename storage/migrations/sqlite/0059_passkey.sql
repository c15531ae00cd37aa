-- +goose Up

-- A passkey of an account (WebAuthn): credential is the id that its authenticator gave
-- it, domain the one that it is for, public_key a COSE key. suspect: its counter went
-- back, so that it signs nobody in any more.
CREATE TABLE passkey (
	id              TEXT    PRIMARY KEY,
	credential      BLOB    NOT NULL UNIQUE,
	account         TEXT    NOT NULL,
	domain          TEXT    NOT NULL,
	name            TEXT    NOT NULL,
	public_key      BLOB    NOT NULL,
	sign_count      INTEGER NOT NULL,
	backup_eligible INTEGER NOT NULL CHECK (backup_eligible IN (0, 1)),
	backed_up       INTEGER NOT NULL CHECK (backed_up IN (0, 1)),
	transports      TEXT    NOT NULL,
	suspect         INTEGER NOT NULL CHECK (suspect IN (0, 1)),
	created_at      INTEGER NOT NULL,
	last_used_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_account ON passkey (account, id);

-- A recovery code signs in to its account once. Only hashes are stored.
CREATE TABLE recovery_code (
	hash    BLOB    PRIMARY KEY,
	account TEXT    NOT NULL,
	made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX recovery_code_account ON recovery_code (account, made_at);

-- Who owns a chain identity may sign in with that Ethereum account.
CREATE INDEX enrolment_owner ON enrolment (owner, handle);
