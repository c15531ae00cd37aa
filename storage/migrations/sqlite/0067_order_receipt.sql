-- +goose Up

-- Receipts for orders that a buyer paid. n counts those of a shop; token is the signed receipt, and doc has
-- the line items and adjustments.
CREATE TABLE order_receipt (
    id         TEXT PRIMARY KEY,
    handle     TEXT NOT NULL,
    n          INTEGER NOT NULL,
    order_id   TEXT NOT NULL,
    agent      TEXT NOT NULL,
    client     TEXT NOT NULL,
    buyer      TEXT NOT NULL,
    currency   TEXT NOT NULL,
    minor      INTEGER NOT NULL,
    paid_at    INTEGER NOT NULL,
    issued_at  INTEGER NOT NULL,
    revoked_at INTEGER,
    reason     TEXT NOT NULL,
    token      TEXT NOT NULL,
    doc        TEXT NOT NULL
);
CREATE UNIQUE INDEX order_receipt_n ON order_receipt (handle, n);
CREATE INDEX order_receipt_order ON order_receipt (handle, order_id, n);
