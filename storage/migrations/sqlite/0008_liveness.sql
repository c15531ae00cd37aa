-- +goose Up

-- What profiles list and the node asks now and then whether it answers: one row
-- an address, however many profiles list it. A chain identity is asked of the
-- chain; its target is the identity, a blank and the thumbprint of its key.
CREATE TABLE probe (
	target      TEXT    PRIMARY KEY,
	kind        TEXT    NOT NULL CHECK (kind IN ('http', 'chain')),
	host        TEXT    NOT NULL,
	domain      TEXT    NOT NULL,
	due_at      INTEGER NOT NULL,
	asked_at    INTEGER NOT NULL DEFAULT 0,
	answered_at INTEGER NOT NULL DEFAULT 0,
	failures    INTEGER NOT NULL DEFAULT 0,
	alive       TEXT    NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead')),
	outcome     TEXT    NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX probe_due ON probe (due_at);
CREATE INDEX probe_domain ON probe (domain, asked_at);

CREATE TABLE probe_of (
	handle TEXT NOT NULL,
	source TEXT NOT NULL CHECK (source IN ('profile', 'merchant')),
	target TEXT NOT NULL,
	PRIMARY KEY (handle, source, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX probe_of_target ON probe_of (target, handle);

-- When an agent last showed itself: a signed request, an owner's answer.
CREATE TABLE sighting (
	handle TEXT    PRIMARY KEY,
	at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sighting_at ON sighting (at);

CREATE INDEX profile_alive ON profile (alive) WHERE listed AND alive = 'alive';
CREATE INDEX profile_listed ON profile (listed) WHERE listed;
CREATE INDEX probe_verified ON probe (kind, alive) WHERE kind = 'chain' AND alive = 'alive';
