-- +goose Up

-- On an expression, so that no plan prefers an index that has all threads of other servers.
DROP INDEX thread_origin_open;
CREATE INDEX thread_origin_open ON thread ((handle || '')) WHERE origin IS NOT NULL AND state = 'open';
