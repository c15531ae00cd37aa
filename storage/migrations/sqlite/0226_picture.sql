-- +goose Up

-- Pictures by the SHA-256 of their largest size, and their bytes by their longest side.
CREATE TABLE picture (
	hash TEXT    PRIMARY KEY,
	size INTEGER NOT NULL,
	at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE picture_size (
	hash TEXT    NOT NULL,
	edge INTEGER NOT NULL,
	body BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX picture_size_hash ON picture_size (hash, edge);

-- Which profiles, and with a sku which of their items, use a picture. doc is what the row of the profile or the item says of it.
CREATE TABLE picture_use (
	handle TEXT NOT NULL,
	sku    TEXT NOT NULL,
	hash   TEXT NOT NULL,
	doc    TEXT NOT NULL,
	PRIMARY KEY (handle, sku)
) STRICT, WITHOUT ROWID;
CREATE INDEX picture_use_hash ON picture_use (hash);
ALTER TABLE profile ADD COLUMN picture TEXT NOT NULL DEFAULT '';
