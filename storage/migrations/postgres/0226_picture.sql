-- +goose Up

-- Pictures by the SHA-256 of their largest size, and their bytes by their longest side.
CREATE TABLE picture (
	hash TEXT COLLATE "C" PRIMARY KEY,
	size BIGINT NOT NULL,
	at   BIGINT NOT NULL
);
CREATE TABLE picture_size (
	hash TEXT COLLATE "C" NOT NULL,
	edge BIGINT NOT NULL,
	body BYTEA NOT NULL
);
CREATE UNIQUE INDEX picture_size_hash ON picture_size (hash, edge);

-- Which profiles, and with a sku which of their items, use a picture. doc is what the row of the profile or the item says of it.
CREATE TABLE picture_use (
	handle TEXT COLLATE "C" NOT NULL,
	sku    TEXT COLLATE "C" NOT NULL,
	hash   TEXT COLLATE "C" NOT NULL,
	doc    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (handle, sku)
);
CREATE INDEX picture_use_hash ON picture_use (hash);
ALTER TABLE profile ADD COLUMN picture TEXT COLLATE "C" NOT NULL DEFAULT '';
