-- +goose Up

-- Keys to which an Ethereum account that controls a chain identity has delegated signing here, by a text that it signed.
CREATE TABLE delegated_key (
	identity   TEXT NOT NULL,
	thumbprint TEXT NOT NULL,
	account    TEXT NOT NULL,
	public_jwk TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	ends_at    INTEGER NOT NULL,
	PRIMARY KEY (identity, thumbprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX delegated_key_ends ON delegated_key (ends_at);
