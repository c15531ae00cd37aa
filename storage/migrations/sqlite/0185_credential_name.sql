-- +goose Up

-- What an account calls something that acts for it and has no name of its own: sessions, devices, keys, wallets, identities.
CREATE TABLE credential_name (
	account TEXT NOT NULL,
	kind    TEXT NOT NULL,
	id      TEXT NOT NULL,
	name    TEXT NOT NULL,
	PRIMARY KEY (account, kind, id)
) STRICT, WITHOUT ROWID;

-- When a key last signed a request, to within ten minutes.
ALTER TABLE agent_key ADD COLUMN last_used_at INTEGER;
ALTER TABLE delegated_key ADD COLUMN last_used_at INTEGER;
