-- +goose Up

-- No query finds posts by the chain identity of their author.
DROP INDEX post_agent;
