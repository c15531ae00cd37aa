-- +goose Up

ALTER TABLE profile ADD COLUMN listed BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE profile ADD COLUMN alive TEXT COLLATE "C" NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead'));
ALTER TABLE profile ADD COLUMN last_seen_at BIGINT NOT NULL DEFAULT 0;
