-- +goose Up

-- The secrets of a payment account are kept while one of its bids may be paid.
CREATE INDEX bid_account ON bid (account, state, moved_at);
