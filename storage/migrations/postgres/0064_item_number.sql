-- +goose Up

-- The items of a merchant by number: what a search in one shop reads first.
CREATE INDEX item_by_number ON item (seq, pos);
