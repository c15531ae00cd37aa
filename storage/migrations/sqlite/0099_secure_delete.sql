-- +goose Up

-- The words of a deleted post leave the index with it, not with a later merge. The indexes of profiles and items,
-- which delete by number, do not know this option. What was deleted before leaves with the merge that follows.
INSERT INTO post_word (post_word, rank) VALUES ('secure-delete', 1);
INSERT INTO post_word (post_word) VALUES ('optimize');
