-- +goose Up

-- A person's meetings by their times, for one week after another.
CREATE INDEX meeting_agenda ON meeting (handle, starts_at, id) WHERE state IN ('submitted', 'approved', 'done', 'no_show');
