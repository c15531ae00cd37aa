-- +goose Up

-- Author's signatures that counted for a post are remembered for years. They leave
-- the table of spent nonces, every row of which is looked at each hour.
CREATE TABLE used_signature (
	key   BYTEA  PRIMARY KEY,
	until BIGINT NOT NULL
);
CREATE INDEX used_signature_until ON used_signature (until);
INSERT INTO used_signature (key, until) SELECT key, until FROM spent WHERE until > 1000 * (extract(epoch FROM now())::bigint + 86400 * 365);
DELETE FROM spent WHERE until > 1000 * (extract(epoch FROM now())::bigint + 86400 * 365);

-- Replies whose parent is missing, and posts of an actor, in their order. The sum keeps
-- PostgreSQL from walking the table by its key until it has met as many.
DROP INDEX post_orphan;
CREATE INDEX post_orphan ON post (reply_to, (seq + 0)) WHERE in_reply_to IS NULL AND reply_to <> '';
DROP INDEX post_actor;
CREATE INDEX post_actor ON post (author_actor, (seq + 0)) WHERE node IS NOT NULL AND state <> 'deleted';

-- Pieces of archives whose import is gone; an import now goes after its pieces.
DELETE FROM archive_piece WHERE import_id NOT IN (SELECT id FROM archive_import);

-- The authors of other servers in a thread, and the tokens of an account that are not
-- revoked, among many that are.
CREATE INDEX post_thread_author ON post (root, node, author_handle) WHERE root IS NOT NULL AND node IS NOT NULL AND state = 'visible';
CREATE INDEX api_token_live ON api_token (account) WHERE revoked_at IS NULL;
