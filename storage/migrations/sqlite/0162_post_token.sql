-- +goose Up

-- The hash of the secret by which the writer of an anonymous post deletes it. The network is kept for a while, and is then empty.
ALTER TABLE writer ADD COLUMN token_hash BLOB;
CREATE INDEX writer_network ON writer (post_id) WHERE network <> '';
