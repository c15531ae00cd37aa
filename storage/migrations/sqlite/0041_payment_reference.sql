-- +goose Up

-- The bank's reference of a payment, '' where the provider gives none.
ALTER TABLE payment ADD COLUMN reference TEXT NOT NULL DEFAULT '';

CREATE INDEX refund_reference ON refund (reference) WHERE reference <> '';
