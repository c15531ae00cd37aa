-- +goose Up

-- What profiles list and the node asks now and then whether it answers: one row
-- an address, however many profiles list it. A chain identity is asked of the
-- chain; its target is the identity, a blank and the thumbprint of its key.
CREATE TABLE probe (
	target      TEXT COLLATE "C" PRIMARY KEY,
	kind        TEXT COLLATE "C" NOT NULL CHECK (kind IN ('http', 'chain')),
	host        TEXT COLLATE "C" NOT NULL,
	domain      TEXT COLLATE "C" NOT NULL,
	due_at      BIGINT NOT NULL,
	asked_at    BIGINT NOT NULL DEFAULT 0,
	answered_at BIGINT NOT NULL DEFAULT 0,
	failures    BIGINT NOT NULL DEFAULT 0,
	alive       TEXT COLLATE "C" NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead')),
	outcome     TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX probe_due ON probe (due_at);
CREATE INDEX probe_domain ON probe (domain, asked_at);

CREATE TABLE probe_of (
	handle TEXT COLLATE "C" NOT NULL,
	source TEXT COLLATE "C" NOT NULL CHECK (source IN ('profile', 'merchant')),
	target TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (handle, source, target)
);
CREATE INDEX probe_of_target ON probe_of (target, handle);

-- When an agent last showed itself: a signed request, an owner's answer.
CREATE TABLE sighting (
	handle TEXT COLLATE "C" PRIMARY KEY,
	at     BIGINT NOT NULL
);
CREATE INDEX sighting_at ON sighting (at);

CREATE INDEX profile_alive ON profile (alive) WHERE listed AND alive = 'alive';
CREATE INDEX profile_listed ON profile (listed) WHERE listed;
CREATE INDEX probe_verified ON probe (kind, alive) WHERE kind = 'chain' AND alive = 'alive';
