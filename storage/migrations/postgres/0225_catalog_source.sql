-- +goose Up

-- Where businesses have their catalogs, and how they were last read there. account set the address; "" for the profile itself.
CREATE TABLE catalog_source (
	handle  TEXT COLLATE "C" PRIMARY KEY,
	account TEXT COLLATE "C" NOT NULL,
	url     TEXT COLLATE "C" NOT NULL,
	doc     TEXT COLLATE "C" NOT NULL
);

-- Digest of what the address had for an item, 0 for what only the owner wrote.
ALTER TABLE item ADD COLUMN fed BIGINT NOT NULL DEFAULT 0;
