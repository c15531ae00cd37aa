-- +goose Up

ALTER TABLE profile ADD COLUMN listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1));
ALTER TABLE profile ADD COLUMN alive TEXT NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead'));
ALTER TABLE profile ADD COLUMN last_seen_at INTEGER NOT NULL DEFAULT 0;
