-- +goose Up

-- Words are moved into these indexes on another connection (storage/pending.go), before the lists are so long, in kB,
-- that a write has to do it.
ALTER INDEX post_word_gin SET (gin_pending_list_limit = 32768);
ALTER INDEX item_word_words SET (gin_pending_list_limit = 32768);
ALTER INDEX profile_rank_words SET (gin_pending_list_limit = 32768);
