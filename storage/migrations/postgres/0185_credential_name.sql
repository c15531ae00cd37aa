-- +goose Up

-- What an account calls something that acts for it and has no name of its own: sessions, devices, keys, wallets, identities.
CREATE TABLE credential_name (
	account TEXT COLLATE "C" NOT NULL,
	kind    TEXT COLLATE "C" NOT NULL,
	id      TEXT COLLATE "C" NOT NULL,
	name    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (account, kind, id)
);

-- When a key last signed a request, to within ten minutes.
ALTER TABLE agent_key ADD COLUMN last_used_at BIGINT;
ALTER TABLE delegated_key ADD COLUMN last_used_at BIGINT;
