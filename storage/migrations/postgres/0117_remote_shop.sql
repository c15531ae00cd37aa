-- +goose Up

-- When the log of a followed board was last read.
ALTER TABLE subscription ADD COLUMN ok_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX subscription_ok ON subscription (ok_at) WHERE ok_at > 0;

-- Shops of other nodes, by their actors, as their nodes summarize them.
CREATE TABLE remote_shop (
	seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	actor TEXT COLLATE "C" NOT NULL UNIQUE,
	host  TEXT COLLATE "C" NOT NULL,
	agent TEXT COLLATE "C" NOT NULL,
	doc   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX remote_shop_host ON remote_shop (host);
CREATE INDEX remote_shop_agent ON remote_shop (agent) WHERE agent <> '';
CREATE TABLE remote_shop_word (
	seq   BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX remote_shop_word_words ON remote_shop_word USING gin (words);

-- Which summary of a shop of this node the log has.
CREATE TABLE shop_told (
	handle TEXT COLLATE "C" PRIMARY KEY,
	digest TEXT COLLATE "C" NOT NULL,
	at     BIGINT NOT NULL
);

-- The shops that are listed already.
INSERT INTO job (kind, lane, args, state, blocked, run_at, dedupe)
	SELECT 'shop-told', 'tell ' || p.handle, convert_to(p.handle, 'UTF8'), 'waiting', 0, 0, 'shop-told ' || p.handle
	FROM merchant m JOIN profile p ON p.seq = m.seq WHERE p.listed;
