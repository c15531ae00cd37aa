-- +goose Up

-- The prices of items whose words are in item_word: a row for each price of an item, in
-- minor units.
CREATE TABLE item_price (
	seq      INTEGER NOT NULL,
	currency TEXT NOT NULL,
	minor    INTEGER NOT NULL,
	pos      INTEGER NOT NULL,
	PRIMARY KEY (seq, currency, minor, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_price_pos ON item_price (pos);
