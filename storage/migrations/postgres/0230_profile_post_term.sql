-- +goose Up

-- The words of listed profiles and of visible posts as their writers spell them, as item_term has those of items: n have one.
-- profile_said has the counted words of each profile. Posts of post_fresh are counted soon (storage/postterm.go).
CREATE TABLE profile_term (
	word TEXT COLLATE "C" PRIMARY KEY,
	key  TEXT COLLATE "C" NOT NULL,
	head TEXT COLLATE "C" NOT NULL,
	tail TEXT COLLATE "C" NOT NULL,
	size BIGINT NOT NULL,
	n    BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX profile_term_key ON profile_term (key);
CREATE INDEX profile_term_head ON profile_term (head, size);
CREATE INDEX profile_term_tail ON profile_term (tail, size);

CREATE TABLE post_term (
	word TEXT COLLATE "C" PRIMARY KEY,
	key  TEXT COLLATE "C" NOT NULL,
	head TEXT COLLATE "C" NOT NULL,
	tail TEXT COLLATE "C" NOT NULL,
	size BIGINT NOT NULL,
	n    BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX post_term_key ON post_term (key);
CREATE INDEX post_term_head ON post_term (head, size);
CREATE INDEX post_term_tail ON post_term (tail, size);

CREATE TABLE profile_said (
	seq   BIGINT PRIMARY KEY,
	words TEXT NOT NULL
);

CREATE TABLE post_fresh (
	seq BIGINT PRIMARY KEY
);
