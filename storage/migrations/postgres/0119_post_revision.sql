-- +goose Up

-- Earlier texts of a post, n = 1 the first. written_at is when its author wrote that text.
CREATE TABLE post_revision (
	post       TEXT COLLATE "C" NOT NULL,
	n          BIGINT           NOT NULL,
	title      TEXT COLLATE "C" NOT NULL,
	body       TEXT COLLATE "C" NOT NULL,
	warning    TEXT COLLATE "C" NOT NULL,
	written_at BIGINT           NOT NULL,
	PRIMARY KEY (post, n)
);
