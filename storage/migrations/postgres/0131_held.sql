-- +goose Up

-- The operator admits hosts one by one: allow. The host * stands for all that have no policy.
ALTER TABLE host_policy DROP CONSTRAINT host_policy_policy_check;
ALTER TABLE host_policy ADD CONSTRAINT host_policy_policy_check CHECK (policy IN ('reject', 'silence', 'allow', 'trusted'));

-- Posts that were stored hidden because of the policy for their host.
CREATE INDEX post_held ON post (node, seq) WHERE state = 'hidden' AND reason = 'held by the policy for its host';
