-- +goose Up

-- What the chain said when a profile was enrolled to a chain identity; identity and
-- key are erc8004 and key_hash of the profile. owner '' is not known yet: the next
-- look at the chain fills it in. A row with ended_at says how the last one ended.
CREATE TABLE enrolment (
	handle     TEXT COLLATE "C" PRIMARY KEY,
	erc8004    TEXT COLLATE "C" NOT NULL,
	owner      TEXT COLLATE "C" NOT NULL,
	wallet     TEXT COLLATE "C" NOT NULL,
	block      BIGINT NOT NULL,
	block_hash TEXT COLLATE "C" NOT NULL,
	made_at    BIGINT NOT NULL,
	ended_at   BIGINT,
	reason     TEXT COLLATE "C" NOT NULL
);

-- The chain identity with whose enrolment a key ends; on_chain: the key has its
-- authority from the identity's record and signs with Agent-Identity only.
ALTER TABLE agent_key ADD COLUMN identity TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agent_key ADD COLUMN on_chain BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE agent_key SET on_chain = TRUE, identity = (SELECT erc8004 FROM profile p WHERE p.handle = agent_key.handle)
	WHERE EXISTS (SELECT 1 FROM profile p WHERE p.handle = agent_key.handle AND p.key_hash = agent_key.thumbprint AND p.erc8004 IS NOT NULL);
UPDATE agent_key SET identity = (SELECT erc8004 FROM profile p WHERE p.handle = agent_key.handle)
	WHERE NOT on_chain AND thumbprint IN (SELECT a.detail FROM audit a JOIN profile p ON a.actor = '@' || p.handle || ' key ' || p.key_hash
		WHERE a.action = 'key add' AND p.erc8004 IS NOT NULL)
	AND EXISTS (SELECT 1 FROM profile p WHERE p.handle = agent_key.handle AND p.erc8004 IS NOT NULL);

-- News of a profile are told under its handle, not under an identity that may
-- become another's.
DELETE FROM news WHERE reader IN (SELECT 'agent:' || erc8004 FROM profile WHERE erc8004 IS NOT NULL);
