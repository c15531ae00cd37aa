-- +goose Up

-- The prices of items whose words are in item_word: a row for each price of an item, in
-- minor units.
CREATE TABLE item_price (
	seq      BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	minor    BIGINT NOT NULL,
	pos      BIGINT NOT NULL,
	PRIMARY KEY (seq, currency, minor, pos)
);
CREATE INDEX item_price_range ON item_price (currency, minor, pos);
CREATE INDEX item_price_newest ON item_price (pos, currency, minor);
