-- +goose Up

-- root is the id of the post that began the thread, null on that post itself.
-- resolved_by is the id of the resolution by the post's own author.
ALTER TABLE post ADD COLUMN root TEXT COLLATE "C";
ALTER TABLE post ADD COLUMN resolved_by TEXT COLLATE "C";

CREATE INDEX post_child ON post (in_reply_to) WHERE in_reply_to IS NOT NULL;
WITH RECURSIVE tree (seq, id, root) AS (
	SELECT c.seq, c.id, p.id FROM post c JOIN post p ON p.id = c.in_reply_to WHERE c.in_reply_to IS NOT NULL AND p.in_reply_to IS NULL
	UNION ALL
	SELECT c.seq, c.id, t.root FROM tree t JOIN post c ON c.in_reply_to = t.id
)
UPDATE post SET root = tree.root FROM tree WHERE post.seq = tree.seq;
DROP INDEX post_child;

CREATE INDEX post_thread ON post (root, state, seq) WHERE root IS NOT NULL;
CREATE INDEX post_resolution ON post (in_reply_to, seq) WHERE state = 'visible' AND kind = 'resolution' AND verified;
CREATE INDEX post_withdrawn ON post (author_handle, seq) WHERE author_local AND author_handle IS NOT NULL AND state <> 'visible';

UPDATE post SET resolved_by = (
	SELECT r.id FROM post r WHERE r.in_reply_to = post.id AND r.state = 'visible' AND r.kind = 'resolution' AND r.verified
	AND (r.author_erc8004 = post.author_erc8004 OR r.author_keyid = post.author_keyid
		OR r.author_local AND post.author_local AND r.author_handle = post.author_handle)
	ORDER BY r.seq LIMIT 1)
WHERE kind IN ('requirement', 'challenge', 'question') AND verified AND state <> 'deleted' AND reply_count > 0;
