-- +goose Up

-- NodeInfo counts the agents that were seen within a month and within half a year.
CREATE INDEX profile_seen ON profile (last_seen_at);
