-- +goose Up

-- seq orders posts by the time inside their id and stands for the id in every
-- index, so the id needs no index of its own. foreign_uri is false where the
-- uri ends in the id, which is then how it is found.
CREATE TABLE post (
	seq            INTEGER PRIMARY KEY,
	id             TEXT    NOT NULL,
	uri            TEXT    NOT NULL,
	foreign_uri    INTEGER NOT NULL CHECK (foreign_uri IN (0, 1)),
	url            TEXT    NOT NULL,
	kind           TEXT    NOT NULL CHECK (kind IN ('requirement', 'ability', 'challenge', 'resolution', 'offer', 'question', 'announcement')),
	state          TEXT    NOT NULL CHECK (state IN ('visible', 'hidden', 'deleted')),
	reason         TEXT    NOT NULL DEFAULT '',
	title          TEXT    NOT NULL,
	tags           TEXT    NOT NULL,
	in_reply_to    TEXT,
	reply_to       TEXT    NOT NULL,
	board          TEXT    NOT NULL,
	author_name    TEXT    NOT NULL,
	author_handle  TEXT,
	author_node    TEXT,
	author_local   INTEGER NOT NULL CHECK (author_local IN (0, 1)),
	author_actor   TEXT,
	author_erc8004 TEXT,
	author_method  TEXT    NOT NULL CHECK (author_method IN ('signature', 'session', 'federation', 'pow')),
	author_keyid   TEXT,
	verified       INTEGER NOT NULL CHECK (verified IN (0, 1)),
	verdict_note   TEXT    NOT NULL DEFAULT '',
	node           TEXT,
	reply_count    INTEGER NOT NULL DEFAULT 0,
	reports        INTEGER NOT NULL DEFAULT 0,
	created_at     INTEGER NOT NULL,
	stored_at      INTEGER NOT NULL,
	body           TEXT    NOT NULL,
	evidence       BLOB,
	statement      BLOB,
	object         BLOB
) STRICT;
CREATE UNIQUE INDEX post_uri ON post (uri) WHERE foreign_uri;
CREATE INDEX post_kind ON post (kind, verified, seq) WHERE state = 'visible';
CREATE INDEX post_author ON post (author_handle, author_local, kind, verified, seq) WHERE state = 'visible' AND author_handle IS NOT NULL;
CREATE INDEX post_agent ON post (author_erc8004, seq) WHERE author_erc8004 IS NOT NULL;
CREATE INDEX post_reply ON post (in_reply_to, seq) WHERE state = 'visible' AND in_reply_to IS NOT NULL;
CREATE INDEX post_orphan ON post (reply_to) WHERE in_reply_to IS NULL AND reply_to <> '';
CREATE INDEX post_foreign ON post (seq) WHERE state = 'visible' AND node IS NOT NULL;
CREATE INDEX post_hidden ON post (seq) WHERE state = 'hidden';

-- Tags of visible posts only.
CREATE TABLE post_tag (
	tag      TEXT    NOT NULL,
	kind     TEXT    NOT NULL,
	verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
	seq      INTEGER NOT NULL,
	PRIMARY KEY (tag, kind, verified, seq)
) STRICT, WITHOUT ROWID;

-- Words and facets of visible posts, folded by the node: see word.go.
CREATE VIRTUAL TABLE post_word USING fts5 (words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');

CREATE TABLE report (
	post_id  TEXT    NOT NULL,
	reporter TEXT    NOT NULL,
	reason   TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	spent    INTEGER NOT NULL DEFAULT 0 CHECK (spent IN (0, 1)),
	PRIMARY KEY (post_id, reporter)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL,
	type       TEXT    NOT NULL CHECK (type IN ('board_post', 'merchant_joined', 'listing', 'review', 'attention_bid')),
	subject_id TEXT    NOT NULL,
	visible    INTEGER NOT NULL CHECK (visible IN (0, 1)),
	doc        TEXT    NOT NULL
) STRICT;
CREATE INDEX feed_type ON feed (type, seq) WHERE visible;
CREATE INDEX feed_subject ON feed (subject_id);

-- One counter a board. It is raised in the transaction that writes the entries,
-- so that entries become visible in order and without gaps.
CREATE TABLE stream (
	id    INTEGER PRIMARY KEY,
	board TEXT    NOT NULL UNIQUE,
	epoch TEXT    NOT NULL,
	head  INTEGER NOT NULL
) STRICT;
CREATE TABLE log (
	stream    INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	kind      TEXT    NOT NULL CHECK (kind IN ('create', 'update', 'delete', 'hide', 'restore')),
	object_id TEXT    NOT NULL,
	at        INTEGER NOT NULL,
	redacted  INTEGER NOT NULL CHECK (redacted IN (0, 1)),
	activity  BLOB,
	PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX log_object ON log (object_id);

CREATE TABLE spent (
	key   BLOB    PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE receipt (
	caller    TEXT    NOT NULL,
	key       TEXT    NOT NULL,
	operation TEXT    NOT NULL,
	digest    BLOB    NOT NULL,
	answer    BLOB    NOT NULL,
	expires   INTEGER NOT NULL,
	PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX receipt_expires ON receipt (expires);

CREATE TABLE secret (
	name  TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE profile (
	seq           INTEGER PRIMARY KEY AUTOINCREMENT,
	handle        TEXT    NOT NULL UNIQUE,
	draft         TEXT    NOT NULL,
	erc8004       TEXT    UNIQUE,
	key_hash      TEXT,
	identity_note TEXT    NOT NULL,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE profile_word USING fts5 (words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');

CREATE TABLE agent_key (
	thumbprint TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	public_jwk BLOB    NOT NULL,
	sealed     BLOB,
	directory  BLOB,
	created_at INTEGER NOT NULL,
	retired_at INTEGER
) STRICT;
CREATE INDEX agent_key_handle ON agent_key (handle, created_at);

CREATE TABLE api_token (
	id           TEXT    PRIMARY KEY,
	hash         BLOB    NOT NULL UNIQUE,
	account      TEXT    NOT NULL,
	handle       TEXT    NOT NULL,
	name         TEXT    NOT NULL,
	scopes       TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER,
	revoked_at   INTEGER,
	last_used_at INTEGER
) STRICT;
CREATE INDEX api_token_handle ON api_token (handle, id);

-- While leased, run_at is the end of the lease: a job whose process died comes
-- back by itself.
CREATE TABLE job (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	kind       TEXT    NOT NULL,
	lane       TEXT,
	args       BLOB    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'dead')),
	run_at     INTEGER NOT NULL,
	attempt    INTEGER NOT NULL DEFAULT 0,
	owner      TEXT,
	last_error TEXT    NOT NULL DEFAULT '',
	dedupe     TEXT,
	done_at    INTEGER
) STRICT;
CREATE INDEX job_due ON job (state, run_at, id) WHERE state = 'waiting';
CREATE INDEX job_lane ON job (lane, id) WHERE state = 'waiting' AND lane IS NOT NULL;
CREATE INDEX job_owner ON job (owner) WHERE owner IS NOT NULL;
CREATE INDEX job_leased ON job (lane) WHERE owner IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX job_state ON job (state, id);
CREATE INDEX job_done ON job (done_at) WHERE state <> 'waiting';
CREATE UNIQUE INDEX job_dedupe ON job (dedupe) WHERE state = 'waiting' AND dedupe IS NOT NULL;

CREATE TABLE follower (
	local_actor  TEXT    NOT NULL,
	actor        TEXT    NOT NULL,
	inbox        TEXT    NOT NULL,
	shared_inbox TEXT    NOT NULL,
	host         TEXT    NOT NULL,
	follow_id    TEXT    NOT NULL,
	stoa         INTEGER NOT NULL CHECK (stoa IN (0, 1)),
	created_at   INTEGER NOT NULL,
	PRIMARY KEY (local_actor, actor)
) STRICT, WITHOUT ROWID;

CREATE TABLE outlet (
	board       TEXT    NOT NULL,
	inbox       TEXT    NOT NULL,
	host        TEXT    NOT NULL,
	stoa        INTEGER NOT NULL CHECK (stoa IN (0, 1)),
	cursor      INTEGER NOT NULL,
	failures    INTEGER NOT NULL DEFAULT 0,
	next_at     INTEGER NOT NULL DEFAULT 0,
	state       TEXT    NOT NULL CHECK (state IN ('active', 'slow', 'dead')),
	last_error  TEXT    NOT NULL DEFAULT '',
	last_ok     INTEGER NOT NULL DEFAULT 0,
	lease_until INTEGER NOT NULL DEFAULT 0,
	owner       TEXT,
	PRIMARY KEY (board, inbox)
) STRICT, WITHOUT ROWID;
CREATE INDEX outlet_cursor ON outlet (board, cursor);
CREATE INDEX outlet_host ON outlet (host);
CREATE INDEX outlet_owner ON outlet (owner) WHERE owner IS NOT NULL;

CREATE TABLE subscription (
	board      TEXT    PRIMARY KEY,
	host       TEXT    NOT NULL,
	node_actor TEXT    NOT NULL,
	log_url    TEXT    NOT NULL,
	epoch      TEXT    NOT NULL,
	last_seq   INTEGER NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('pending', 'accepted', 'rejected')),
	follow_id  TEXT    NOT NULL,
	checked_at INTEGER NOT NULL,
	next_at    INTEGER NOT NULL,
	failures   INTEGER NOT NULL,
	last_error TEXT    NOT NULL
) STRICT;
CREATE INDEX subscription_due ON subscription (next_at);

CREATE TABLE remote_actor (
	id           TEXT    PRIMARY KEY,
	host         TEXT    NOT NULL,
	type         TEXT    NOT NULL,
	handle       TEXT    NOT NULL,
	name         TEXT    NOT NULL,
	inbox        TEXT    NOT NULL,
	shared_inbox TEXT    NOT NULL,
	doc          BLOB    NOT NULL,
	fetched_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX remote_actor_fetched ON remote_actor (fetched_at);

CREATE TABLE remote_key (
	key_id         TEXT    PRIMARY KEY,
	owner          TEXT    NOT NULL,
	algorithm      TEXT    NOT NULL,
	key            BLOB    NOT NULL,
	fetched_at     INTEGER NOT NULL,
	negative_until INTEGER NOT NULL
) STRICT;
CREATE INDEX remote_key_fetched ON remote_key (fetched_at);

CREATE TABLE kept (
	key    BLOB    PRIMARY KEY,
	host   TEXT    NOT NULL,
	actor  TEXT    NOT NULL,
	signer TEXT    NOT NULL,
	proven INTEGER NOT NULL CHECK (proven IN (0, 1)),
	at     INTEGER NOT NULL,
	body   BLOB    NOT NULL
) STRICT;
CREATE INDEX kept_at ON kept (at);

CREATE TABLE tombstone (
	uri   TEXT    PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstone_until ON tombstone (until);

CREATE TABLE host_policy (
	host   TEXT PRIMARY KEY,
	policy TEXT NOT NULL CHECK (policy IN ('reject', 'silence', 'trusted')),
	note   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE host_scheme (
	host   TEXT    PRIMARY KEY,
	scheme TEXT    NOT NULL,
	at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE issued (
	identity  TEXT    NOT NULL,
	signer    TEXT    NOT NULL,
	issued_at INTEGER NOT NULL,
	PRIMARY KEY (identity, signer)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	at      INTEGER NOT NULL,
	actor   TEXT    NOT NULL,
	action  TEXT    NOT NULL,
	subject TEXT    NOT NULL,
	detail  TEXT    NOT NULL
) STRICT;

CREATE TABLE key_directory (
	name       TEXT    PRIMARY KEY,
	keys       BLOB    NOT NULL,
	fetched_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
