-- +goose Up

-- Orders that are over and still say who bought.
CREATE INDEX shop_order_buyers ON shop_order (moved_at) WHERE length(sealed) > 0 AND state IN ('fulfilled', 'canceled', 'refunded');
