-- +goose Up

-- What a verified author rests on: see protocol.AuthorProof. Rows of before have
-- none of it; what they rest on follows from the author.
ALTER TABLE post ADD COLUMN proof_level TEXT;
ALTER TABLE post ADD COLUMN proof_subject TEXT;
ALTER TABLE post ADD COLUMN proof_block BIGINT;
ALTER TABLE post ADD COLUMN proof_at BIGINT;
