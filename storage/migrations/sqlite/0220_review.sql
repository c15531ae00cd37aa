-- +goose Up

-- Of the counted reviews of an identity, or of a shop (agent is @handle), those of orders whose payment the provider reported, and those
-- whose payment buyer and shop confirmed. The others are of payments on a chain. A profile shows the sum of both.
ALTER TABLE feedback_sum ADD COLUMN provider_reviews INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedback_sum ADD COLUMN provider_stars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedback_sum ADD COLUMN confirmed_reviews INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedback_sum ADD COLUMN confirmed_stars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN provider_reviews INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN provider_stars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN confirmed_reviews INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN confirmed_stars INTEGER NOT NULL DEFAULT 0;
CREATE INDEX feedback_newest ON feedback (agent, state, id);

-- The names by which the buyers of counted reviews are told: each counts once for a shop in 30 days.
CREATE TABLE review_buyer (
	buyer    TEXT NOT NULL,
	agent    TEXT NOT NULL,
	at       INTEGER NOT NULL,
	feedback TEXT NOT NULL,
	PRIMARY KEY (buyer, agent, at, feedback)
) STRICT, WITHOUT ROWID;
CREATE INDEX review_buyer_of ON review_buyer (feedback);

-- A receipt says by now how the payment is known: the reviews that counted with one are judged again.
UPDATE feed SET visible = FALSE WHERE subject_id IN (SELECT id FROM feedback WHERE state = 'counted' AND reason = 'order-receipt');
DELETE FROM feedback_proof WHERE feedback IN (SELECT id FROM feedback WHERE state = 'counted' AND reason = 'order-receipt');
UPDATE feedback SET state = 'waiting', next_at = 0 WHERE state = 'counted' AND reason = 'order-receipt';
UPDATE feedback_sum SET reviews = (SELECT count(*) FROM feedback f WHERE f.agent = feedback_sum.agent AND f.state = 'counted'),
	stars = (SELECT COALESCE(sum(f.rating), 0) FROM feedback f WHERE f.agent = feedback_sum.agent AND f.state = 'counted');
UPDATE profile SET reviews = COALESCE((SELECT s.reviews FROM feedback_sum s JOIN feedback_agent a ON a.agent = s.agent AND a.block IS NULL
		WHERE s.agent = profile.erc8004), 0),
	stars = COALESCE((SELECT s.stars FROM feedback_sum s JOIN feedback_agent a ON a.agent = s.agent AND a.block IS NULL
		WHERE s.agent = profile.erc8004), 0) WHERE reviews > 0;
INSERT INTO review_buyer (buyer, agent, at, feedback) SELECT 'wallet:' || client, agent, at, id FROM feedback WHERE state = 'counted';
