-- +goose Up

-- When an operator hid the text of a review, and the public reason.
ALTER TABLE feedback ADD COLUMN hidden_at BIGINT;
ALTER TABLE feedback ADD COLUMN hidden_why TEXT NOT NULL DEFAULT '';
CREATE INDEX feedback_hidden ON feedback (id) WHERE hidden_at IS NOT NULL;
