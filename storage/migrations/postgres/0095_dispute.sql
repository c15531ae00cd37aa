-- +goose Up

-- An undecided dispute of a payment that the owner did not confirm: by whom, ''
-- for a stranger; null without one. disputes counts the known ones of a board.
ALTER TABLE bid ADD COLUMN dispute TEXT COLLATE "C";
ALTER TABLE attention_board ADD COLUMN disputes BIGINT NOT NULL DEFAULT 0;

CREATE INDEX bid_dispute ON bid (board, dispute) WHERE dispute IS NOT NULL;
CREATE INDEX bid_disputed ON bid (board, (id || '')) WHERE dispute IS NOT NULL;
CREATE INDEX bid_unconfirmed ON bid (board, anonymous, moved_at) WHERE state = 'unconfirmed';
