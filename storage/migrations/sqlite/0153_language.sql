-- +goose Up

-- The language of letters to an account and of notices about its profiles: a code, '' where it is not known yet.
ALTER TABLE account ADD COLUMN language TEXT NOT NULL DEFAULT '';
