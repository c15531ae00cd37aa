-- +goose Up

-- Every listed agent of a followed node is known, not only its shops. What nodes told of shops is told again with the rest.
DROP TABLE remote_shop_word;
DROP TABLE remote_shop;
DROP TABLE shop_told;
DELETE FROM job WHERE kind = 'shop-told';
UPDATE log SET object_id = 'agent/' || substr(object_id, 6) WHERE object_id LIKE 'shop/%';

-- Agents of other nodes, by their actors, as their nodes summarize them.
CREATE TABLE remote_agent (
	seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	actor TEXT COLLATE "C" NOT NULL UNIQUE,
	host  TEXT COLLATE "C" NOT NULL,
	agent TEXT COLLATE "C" NOT NULL,
	doc   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX remote_agent_host ON remote_agent (host);
CREATE INDEX remote_agent_agent ON remote_agent (agent) WHERE agent <> '';
CREATE TABLE remote_agent_word (
	seq   BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX remote_agent_word_words ON remote_agent_word USING gin (words);

-- Which summary of an agent of this node the log has.
CREATE TABLE agent_told (
	handle TEXT COLLATE "C" PRIMARY KEY,
	digest TEXT COLLATE "C" NOT NULL,
	at     BIGINT NOT NULL
);

-- The agents that are listed already.
INSERT INTO job (kind, lane, args, state, blocked, run_at, dedupe)
	SELECT 'agent-told', 'tell ' || p.handle, convert_to(p.handle, 'UTF8'), 'waiting', 0, 0, 'agent-told ' || p.handle
	FROM profile p WHERE p.listed;
