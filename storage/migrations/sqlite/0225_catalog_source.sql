-- +goose Up

-- Where businesses have their catalogs, and how they were last read there. account set the address; "" for the profile itself.
CREATE TABLE catalog_source (
	handle  TEXT PRIMARY KEY,
	account TEXT NOT NULL,
	url     TEXT NOT NULL,
	doc     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Digest of what the address had for an item, 0 for what only the owner wrote.
ALTER TABLE item ADD COLUMN fed INTEGER NOT NULL DEFAULT 0;
