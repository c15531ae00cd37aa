-- +goose Up

-- Who owned the token of a verified author's chain identity at proof_block, and the
-- hash of that block: see protocol.AuthorProof. Posts of before have neither.
ALTER TABLE post ADD COLUMN proof_owner TEXT;
ALTER TABLE post ADD COLUMN proof_hash TEXT;

-- News of threads were kept for a chain identity, whoever had it. What was begun
-- before owners were stored belongs to the identity and its key (protocol/party.go).
-- News of other kinds are stored for the key, too.
UPDATE news SET reader = reader || '#' || (SELECT t.author::json->>'keyid' FROM thread t WHERE t.id = split_part(ref, '#', 1))
	WHERE reader LIKE 'agent:%' AND kind IN ('answer', 'closed')
	AND EXISTS (SELECT 1 FROM thread t WHERE t.id = split_part(ref, '#', 1) AND t.author::json->>'keyid' IS NOT NULL);
