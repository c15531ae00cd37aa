-- +goose Up

-- Earlier texts of a post, n = 1 the first. written_at is when its author wrote that text.
CREATE TABLE post_revision (
	post       TEXT    NOT NULL,
	n          INTEGER NOT NULL,
	title      TEXT    NOT NULL,
	body       TEXT    NOT NULL,
	warning    TEXT    NOT NULL,
	written_at INTEGER NOT NULL,
	PRIMARY KEY (post, n)
) STRICT, WITHOUT ROWID;
