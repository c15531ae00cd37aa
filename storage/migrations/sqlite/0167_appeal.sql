-- +goose Up

-- appeal: of an appeal, the line of the moderation log that it is against, so that each decision is appealed once.
ALTER TABLE complaint ADD COLUMN appeal TEXT;
CREATE UNIQUE INDEX complaint_appeal ON complaint (appeal) WHERE appeal IS NOT NULL;

-- The last decision about a subject.
CREATE INDEX moderation_log_subject ON moderation_log (subject, id) WHERE subject <> '';
