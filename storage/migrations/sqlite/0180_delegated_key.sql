-- +goose Up

-- Keys to which an Ethereum account that controls a chain identity has delegated signing here, by a text that it signed.
CREATE TABLE delegated_key (
	id         TEXT PRIMARY KEY, -- identity and thumbprint
	identity   TEXT NOT NULL,
	thumbprint TEXT NOT NULL,
	account    TEXT NOT NULL,
	public_jwk TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	ends_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX delegated_key_ends ON delegated_key (ends_at);
CREATE INDEX delegated_key_identity ON delegated_key (identity);
