-- +goose Up

-- The node that issued a receipt which came with an archive; empty for receipts of this node.
ALTER TABLE order_receipt ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
