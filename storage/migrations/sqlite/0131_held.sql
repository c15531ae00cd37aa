-- +goose Up

-- The operator admits hosts one by one: allow. The host * stands for all that have no policy.
CREATE TABLE host_policy_2 (
	host   TEXT PRIMARY KEY,
	policy TEXT NOT NULL CHECK (policy IN ('reject', 'silence', 'allow', 'trusted')),
	note   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO host_policy_2 (host, policy, note) SELECT host, policy, note FROM host_policy;
DROP TABLE host_policy;
ALTER TABLE host_policy_2 RENAME TO host_policy;

-- Posts that were stored hidden because of the policy for their host.
CREATE INDEX post_held ON post (node, seq) WHERE state = 'hidden' AND reason = 'held by the policy for its host';
