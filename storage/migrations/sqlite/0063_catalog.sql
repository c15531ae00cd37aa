-- +goose Up

-- The items of merchants. pos is the number of an item, doubled, and the slot of the
-- row: an item has a second row while an import replaces the first. A row is on sale
-- for versions of the merchant's catalog from since to before until; away_at is when
-- it left. indexed says that its words are in item_word.
CREATE TABLE item (
	pos      INTEGER PRIMARY KEY,
	seq      INTEGER NOT NULL,
	sku      TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	since    INTEGER NOT NULL,
	until    INTEGER NOT NULL,
	place    INTEGER NOT NULL,
	doc      TEXT    NOT NULL,
	digest   INTEGER NOT NULL,
	currency TEXT,
	low      INTEGER,
	high     INTEGER,
	indexed  INTEGER NOT NULL DEFAULT 0,
	told     INTEGER NOT NULL DEFAULT 0,
	away_at  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX item_place ON item (seq, place, pos);
CREATE INDEX item_sku ON item (seq, sku, pos);
CREATE INDEX item_id ON item (id);
CREATE INDEX item_told ON item (seq) WHERE told = 1;

CREATE VIRTUAL TABLE item_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- catalog is the version of the catalog that readers see, items and item_bytes what is
-- on sale in it. Items up to the number news were announced, or need no announcement;
-- told_n announcements were made since told_at. import_id is the import that prepares
-- the next version, last heard of at import_at.
ALTER TABLE merchant ADD COLUMN catalog INTEGER NOT NULL DEFAULT 1;
ALTER TABLE merchant ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN item_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN news INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN told_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN told_n INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN import_id TEXT NOT NULL DEFAULT '';
ALTER TABLE merchant ADD COLUMN import_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX merchant_import ON merchant (import_at) WHERE import_id <> '';
ALTER TABLE profile ADD COLUMN catalog INTEGER NOT NULL DEFAULT 0;

-- What the directory finds a merchant by because it sells it.
CREATE TABLE merchant_word (
	seq   INTEGER PRIMARY KEY,
	words TEXT NOT NULL
) STRICT;

INSERT INTO item (pos, seq, sku, id, since, until, place, doc, digest, currency, low, high, told, away_at)
	SELECT 2 * row_number() OVER (ORDER BY seq, COALESCE(place, 0), id), seq, sku, id, 1, CASE WHEN place IS NULL THEN 1 ELSE 9223372036854775807 END,
		COALESCE(place, 0) * 1048576, doc, 0, currency, minor, minor, listed_at > 0, away_at FROM merchant_item;
UPDATE merchant SET items = (SELECT count(*) FROM item i WHERE i.seq = merchant.seq AND i.until > 1),
	item_bytes = (SELECT COALESCE(sum(length(CAST(doc AS BLOB))), 0) FROM item i WHERE i.seq = merchant.seq AND i.until > 1),
	news = (SELECT COALESCE(max(pos) / 2, 0) FROM item i WHERE i.seq = merchant.seq AND i.told = 1);
UPDATE profile SET catalog = 1 WHERE seq IN (SELECT seq FROM merchant WHERE items > 0);
DROP TABLE merchant_item;
