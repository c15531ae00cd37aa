-- +goose Up

-- The items of merchants. pos is the number of an item, doubled, and the slot of the
-- row: an item has a second row while an import replaces the first. A row is on sale
-- for versions of the merchant's catalog from since to before until; away_at is when
-- it left. indexed says that its words are in item_word.
CREATE TABLE item (
	pos      BIGINT PRIMARY KEY,
	seq      BIGINT NOT NULL,
	sku      TEXT COLLATE "C" NOT NULL,
	id       TEXT COLLATE "C" NOT NULL,
	since    BIGINT NOT NULL,
	until    BIGINT NOT NULL,
	place    BIGINT NOT NULL,
	doc      TEXT COLLATE "C" NOT NULL,
	digest   BIGINT NOT NULL,
	currency TEXT COLLATE "C",
	low      BIGINT,
	high     BIGINT,
	indexed  BOOLEAN NOT NULL DEFAULT FALSE,
	told     BOOLEAN NOT NULL DEFAULT FALSE,
	away_at  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX item_place ON item (seq, place, pos);
CREATE INDEX item_sku ON item (seq, sku, pos);
CREATE INDEX item_id ON item (id);
CREATE INDEX item_told ON item (seq) WHERE told;

CREATE TABLE item_word (
	seq   BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX item_word_words ON item_word USING gin (words);

-- catalog is the version of the catalog that readers see, items and item_bytes what is
-- on sale in it. Items up to the number news were announced, or need no announcement;
-- told_n announcements were made since told_at. import_id is the import that prepares
-- the next version, last heard of at import_at.
ALTER TABLE merchant ADD COLUMN catalog BIGINT NOT NULL DEFAULT 1;
ALTER TABLE merchant ADD COLUMN items BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN item_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN news BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN told_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN told_n BIGINT NOT NULL DEFAULT 0;
ALTER TABLE merchant ADD COLUMN import_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE merchant ADD COLUMN import_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX merchant_import ON merchant (import_at) WHERE import_id <> '';
ALTER TABLE profile ADD COLUMN catalog BOOLEAN NOT NULL DEFAULT FALSE;

-- What the directory finds a merchant by because it sells it.
CREATE TABLE merchant_word (
	seq   BIGINT PRIMARY KEY,
	words TEXT COLLATE "C" NOT NULL
);

INSERT INTO item (pos, seq, sku, id, since, until, place, doc, digest, currency, low, high, told, away_at)
	SELECT 2 * row_number() OVER (ORDER BY seq, COALESCE(place, 0), id), seq, sku, id, 1, CASE WHEN place IS NULL THEN 1 ELSE 9223372036854775807 END,
		COALESCE(place, 0) * 1048576, doc, 0, currency, minor, minor, listed_at > 0, away_at FROM merchant_item;
CREATE SEQUENCE item_number;
SELECT setval('item_number', COALESCE(max(pos), 0) / 2 + 1) FROM item;
UPDATE merchant SET items = (SELECT count(*) FROM item i WHERE i.seq = merchant.seq AND i.until > 1),
	item_bytes = (SELECT COALESCE(sum(octet_length(doc)), 0) FROM item i WHERE i.seq = merchant.seq AND i.until > 1),
	news = (SELECT COALESCE(max(pos) / 2, 0) FROM item i WHERE i.seq = merchant.seq AND i.told);
UPDATE profile SET catalog = TRUE WHERE seq IN (SELECT seq FROM merchant WHERE items > 0);
DROP TABLE merchant_item;
