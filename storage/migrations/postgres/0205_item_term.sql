-- +goose Up

-- The words of the items whose words are in item_word, as their sellers spell them: n items have one. What a question
-- that finds too little may have meant is looked for by key, or by size and the first or last two letters, in Latin
-- letters (storage/itemterm.go).
CREATE TABLE item_term (
	word TEXT COLLATE "C" PRIMARY KEY,
	key  TEXT COLLATE "C" NOT NULL,
	head TEXT COLLATE "C" NOT NULL,
	tail TEXT COLLATE "C" NOT NULL,
	size BIGINT NOT NULL,
	n    BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX item_term_key ON item_term (key);
CREATE INDEX item_term_head ON item_term (head, size);
CREATE INDEX item_term_tail ON item_term (tail, size);
