-- +goose Up

-- Keys to which an Ethereum account that controls a chain identity has delegated signing here, by a text that it signed.
CREATE TABLE delegated_key (
	id         TEXT COLLATE "C" PRIMARY KEY, -- identity and thumbprint
	identity   TEXT COLLATE "C" NOT NULL,
	thumbprint TEXT COLLATE "C" NOT NULL,
	account    TEXT COLLATE "C" NOT NULL,
	public_jwk TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	ends_at    BIGINT NOT NULL
);
CREATE INDEX delegated_key_ends ON delegated_key (ends_at);
CREATE INDEX delegated_key_identity ON delegated_key (identity);
