-- +goose Up

-- Posts that came with an archive of a profile: they stay those of the node that
-- made them, and go into the profile's next archive. They have no
-- feed item: they are no news. The handle is '' once the profile is gone.
CREATE TABLE archive_post (
	handle TEXT   NOT NULL,
	seq    INTEGER NOT NULL,
	PRIMARY KEY (handle, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX archive_post_seq ON archive_post (seq);
