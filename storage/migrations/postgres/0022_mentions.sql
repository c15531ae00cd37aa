-- +goose Up

-- Whom a post of this node names beside the author it answers: a JSON list, empty
-- for none.
ALTER TABLE post ADD COLUMN mentions TEXT COLLATE "C" NOT NULL DEFAULT '';
