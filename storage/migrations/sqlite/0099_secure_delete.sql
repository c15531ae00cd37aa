-- +goose Up

-- The words of a deleted post leave the index with it, not with a later merge. The indexes of profiles and items,
-- which delete by number, do not know this option. What was deleted before leaves with a later merge.
INSERT INTO post_word (post_word, rank) VALUES ('secure-delete', 1);
