-- +goose Up

-- Whose reviews of an identity count: those of owner, from the place since on, at the time since_at.
ALTER TABLE feedback_agent ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE feedback_agent ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedback_agent ADD COLUMN since_at INTEGER NOT NULL DEFAULT 0;
UPDATE feedback_agent SET owner = COALESCE((SELECT e.owner FROM enrolment e WHERE e.erc8004 = feedback_agent.agent
	ORDER BY e.ended_at IS NOT NULL, e.made_at DESC LIMIT 1), '');

-- Sales between the reviews that are stored were not read: read again from the first of them.
UPDATE feedback_agent SET block = (SELECT min(f.block) - 1 FROM feedback f WHERE f.agent = feedback_agent.agent)
	WHERE (SELECT min(f.block) FROM feedback f WHERE f.agent = feedback_agent.agent) <= COALESCE((SELECT e.block FROM enrolment e
	WHERE e.erc8004 = feedback_agent.agent AND e.ended_at IS NULL), 9223372036854775807);

-- What counted is decided again, by the rules of now, the oldest first.
UPDATE feed SET visible = 0 WHERE subject_id IN (SELECT id FROM feedback WHERE state = 'counted');
UPDATE feedback SET state = 'waiting', reason = 'waiting', next_at = at, tries = 0 WHERE state = 'counted';
DELETE FROM feedback_proof;
DELETE FROM feedback_sum;
UPDATE profile SET reviews = 0, stars = 0 WHERE reviews <> 0 OR stars <> 0;
