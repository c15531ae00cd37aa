-- +goose NO TRANSACTION
-- +goose Up

-- What was deleted before PRAGMA secure_delete was set: from the indexes of words, and from free pages. Takes
-- some 40 s a GB, and as much room again meanwhile.
INSERT INTO post_word (post_word) VALUES ('optimize');
INSERT INTO profile_word (profile_word) VALUES ('optimize');
INSERT INTO item_word (item_word) VALUES ('optimize');
VACUUM;
