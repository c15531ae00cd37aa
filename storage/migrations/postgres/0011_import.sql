-- +goose Up

-- Imports of archives. state is 'staging' while the archive is being laid down,
-- 'running' from the moment its profile is here, 'done' when all of it is. done
-- counts the records that came after the profile; holder is who is at it, and at
-- when it last was. A running import is finished by whoever finds it left.
CREATE TABLE archive_import (
	id     TEXT    PRIMARY KEY,
	handle TEXT    NOT NULL,
	state  TEXT    NOT NULL CHECK (state IN ('staging', 'running', 'done')),
	holder TEXT    NOT NULL,
	at     BIGINT  NOT NULL,
	done   BIGINT  NOT NULL,
	ruling BYTEA   NOT NULL,
	report BYTEA   NOT NULL
);
CREATE INDEX archive_import_handle ON archive_import (handle) WHERE state = 'running';
CREATE INDEX archive_import_at ON archive_import (at);

-- The bytes of the archive, in order, until it is imported.
CREATE TABLE archive_piece (
	import_id TEXT    NOT NULL,
	n         BIGINT  NOT NULL,
	bytes     BYTEA   NOT NULL,
	PRIMARY KEY (import_id, n)
);
