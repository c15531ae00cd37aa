-- +goose Up

-- The tables of the first release, 0.1.0. Later versions add files with higher numbers.

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
	object         BLOB,
	-- root is the id of the post that began the thread, null on that post itself.
	-- resolved_by is the id of the resolution by the post's own author.
	root TEXT,
	resolved_by TEXT,
	-- The language that a post is in as far as its author's profile says, a tag of
	-- BCP 47; empty when unknown.
	language TEXT NOT NULL DEFAULT '',
	-- Whom a post of this node names beside the author it answers: a JSON list, empty
	-- for none.
	mentions TEXT NOT NULL DEFAULT '',
	-- What a verified author rests on: see protocol.AuthorProof. Rows without
	-- it: what they rest on follows from the author.
	proof_level TEXT,
	proof_subject TEXT,
	proof_block INTEGER,
	proof_at INTEGER,
	-- Counts that are kept, since what they count is asked for again and again and
	-- may be much: the visible posts below the root of a thread, the followers of an
	-- actor.
	thread_count INTEGER NOT NULL DEFAULT 0,
	-- Who owned the token of a verified author's chain identity at proof_block, and the
	-- hash of that block: see protocol.AuthorProof; null where it is not known.
	proof_owner TEXT,
	proof_hash TEXT,
	-- The name that a verified author gave itself; author_name is then the one that the node knows.
	author_claimed TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX post_uri ON post (uri) WHERE foreign_uri;
CREATE INDEX post_kind ON post (kind, verified, seq) WHERE state = 'visible';
CREATE INDEX post_author ON post (author_handle, author_local, kind, verified, seq) WHERE state = 'visible' AND author_handle IS NOT NULL;
CREATE INDEX post_reply ON post (in_reply_to, seq) WHERE state = 'visible' AND in_reply_to IS NOT NULL;
CREATE INDEX post_foreign ON post (seq) WHERE state = 'visible' AND node IS NOT NULL;
CREATE INDEX post_hidden ON post (seq) WHERE state = 'hidden';
CREATE INDEX post_thread ON post (root, state, seq) WHERE root IS NOT NULL;
CREATE INDEX post_resolution ON post (in_reply_to, seq) WHERE state = 'visible' AND kind = 'resolution' AND verified;
CREATE INDEX post_withdrawn ON post (author_handle, seq) WHERE author_local AND author_handle IS NOT NULL AND state <> 'visible';
CREATE INDEX post_deleted ON post (seq) WHERE state = 'deleted';
-- What the outbox of a board lists: its posts but those of visitors.
CREATE INDEX post_announced ON post (board, seq) WHERE state = 'visible' AND author_method <> 'pow';
CREATE INDEX post_orphan ON post (reply_to, (seq + 0)) WHERE in_reply_to IS NULL AND reply_to <> '';
CREATE INDEX post_actor ON post (author_actor, (seq + 0)) WHERE node IS NOT NULL AND state <> 'deleted';
-- The authors of other servers in a thread, and the tokens of an account that are not
-- revoked, among many that are.
CREATE INDEX post_thread_author ON post (root, node, author_handle) WHERE root IS NOT NULL AND node IS NOT NULL AND state = 'visible';

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
	-- A report that another server sent, by its domain; empty for one that counts
	-- towards hiding.
	domain TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (post_id, reporter)
) STRICT, WITHOUT ROWID;
CREATE INDEX report_at ON report (at);
CREATE INDEX report_domain ON report (domain) WHERE domain <> '' AND NOT spent;

CREATE TABLE feed (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL,
	type       TEXT    NOT NULL CHECK (type IN ('board_post', 'merchant_joined', 'listing', 'review', 'attention_bid')),
	subject_id TEXT    NOT NULL,
	visible    INTEGER NOT NULL CHECK (visible IN (0, 1)),
	doc        TEXT    NOT NULL,
	n INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX feed_type ON feed (type, seq) WHERE visible;
CREATE INDEX feed_subject ON feed (subject_id);
CREATE UNIQUE INDEX feed_n ON feed (n);

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
	updated_at    INTEGER NOT NULL,
	listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1)),
	alive TEXT NOT NULL DEFAULT 'unknown' CHECK (alive IN ('unknown', 'alive', 'dead')),
	last_seen_at INTEGER NOT NULL DEFAULT 0,
	joined_at INTEGER NOT NULL DEFAULT 0,
	pos INTEGER,
	-- The profile's attention board is open.
	attention INTEGER NOT NULL DEFAULT 0 CHECK (attention IN (0, 1)),
	-- The profile takes meeting requests.
	meetings INTEGER NOT NULL DEFAULT 0 CHECK (meetings IN (0, 1)),
	catalog INTEGER NOT NULL DEFAULT 0,
	reviews INTEGER NOT NULL DEFAULT 0,
	stars INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX profile_unplaced ON profile (seq) WHERE listed AND pos IS NULL;
CREATE INDEX profile_created ON profile (created_at);
CREATE INDEX profile_alive ON profile (alive) WHERE listed AND alive = 'alive';
CREATE INDEX profile_listed ON profile (listed) WHERE listed;

CREATE TABLE agent_key (
	thumbprint TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	public_jwk BLOB    NOT NULL,
	sealed     BLOB,
	directory  BLOB,
	created_at INTEGER NOT NULL,
	retired_at INTEGER,
	-- The chain identity with whose enrolment a key ends; on_chain: the key has its
	-- authority from the identity's record and signs with Agent-Identity only.
	identity TEXT NOT NULL DEFAULT '',
	on_chain INTEGER NOT NULL DEFAULT 0 CHECK (on_chain IN (0, 1))
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
CREATE INDEX api_token_account ON api_token (account, id);
CREATE INDEX api_token_ended ON api_token ((COALESCE(revoked_at, expires_at)));
CREATE INDEX api_token_live ON api_token (account) WHERE revoked_at IS NULL;

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
	done_at    INTEGER,
	-- 0: may run when it is due; 1: waits for its lane; NULL: done or dead.
	blocked INTEGER CHECK (blocked IN (0, 1))
) STRICT;
CREATE INDEX job_owner ON job (owner) WHERE owner IS NOT NULL;
CREATE INDEX job_state ON job (state, id);
CREATE INDEX job_done ON job (done_at) WHERE state <> 'waiting';
CREATE UNIQUE INDEX job_dedupe ON job (dedupe) WHERE state = 'waiting' AND dedupe IS NOT NULL;
CREATE INDEX job_due ON job (run_at, id) WHERE blocked = 0;
CREATE INDEX job_kind ON job (state, kind, run_at);
CREATE INDEX job_lane ON job (lane, blocked, id) WHERE blocked IS NOT NULL;

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
CREATE INDEX follower_host ON follower (host);
-- The followers that an inbox delivers to, for the end of inboxes that are given up.
CREATE INDEX follower_inbox ON follower (local_actor, (CASE WHEN shared_inbox <> '' THEN shared_inbox ELSE inbox END));

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
CREATE INDEX outlet_host ON outlet (host);
CREATE INDEX outlet_owner ON outlet (owner) WHERE owner IS NOT NULL;
CREATE INDEX outlet_failing ON outlet (next_at) WHERE state <> 'active';
CREATE INDEX outlet_state ON outlet (board, state, cursor, inbox);

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
	last_error TEXT    NOT NULL,
	-- How far the log of a followed board goes, to show how far behind this node is.
	head INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX subscription_host ON subscription (host);
CREATE INDEX subscription_due ON subscription (next_at) WHERE state = 'accepted';

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
	negative_until INTEGER NOT NULL,
	-- What other servers make a node keep is capped; rows of peers are evicted last:
	-- see cap.go.
	host TEXT NOT NULL DEFAULT ''
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
-- An activity whose job is done keeps its key, so that a repeat is known, and no
-- body. What waits is found by its length.
CREATE INDEX kept_waiting ON kept (length(body)) WHERE length(body) > 0;

CREATE TABLE tombstone (
	uri   TEXT    PRIMARY KEY,
	until INTEGER NOT NULL,
	host TEXT NOT NULL DEFAULT ''
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
CREATE INDEX host_scheme_at ON host_scheme (at);

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
-- What is old is forgotten: see audit.go.
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_told ON audit (at) WHERE action IN ('kept-out', 'flag');
-- The audit log by who did it, and by what was done.
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_action ON audit ((action || ''), id); -- || keeps audit_told for what is deleted

CREATE TABLE key_directory (
	name       TEXT    PRIMARY KEY,
	keys       BLOB    NOT NULL,
	fetched_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Versions of listed profiles, ordered as lists show them: pos is made of
-- liveness and freshness. A version holds from the number since to before the
-- number until of the clock, so that a walk reads the lists as they were when it
-- began. See rank.go.
CREATE TABLE profile_rank (
	pos       INTEGER PRIMARY KEY,
	seq       INTEGER NOT NULL,
	since     INTEGER NOT NULL,
	until     INTEGER NOT NULL,
	closed_at INTEGER
) STRICT;
CREATE INDEX profile_rank_closed ON profile_rank (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE profile_clock (
	id     INTEGER PRIMARY KEY CHECK (id = 1),
	now    INTEGER NOT NULL,
	pruned INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE profile_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- opens and closes are the span of open time that was running or coming up when
-- it was last looked at; both 0 where the hours are unknown.
CREATE TABLE merchant (
	seq        INTEGER PRIMARY KEY,
	record     TEXT    NOT NULL,
	opens      INTEGER NOT NULL,
	closes     INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	-- catalog is the version of the catalog that readers see, items and item_bytes what is
	-- on sale in it. Items up to the number news were announced, or need no announcement;
	-- told_n announcements were made since told_at. import_id is the import that prepares
	-- the next version, last heard of at import_at.
	catalog INTEGER NOT NULL DEFAULT 1,
	items INTEGER NOT NULL DEFAULT 0,
	item_bytes INTEGER NOT NULL DEFAULT 0,
	news INTEGER NOT NULL DEFAULT 0,
	told_at INTEGER NOT NULL DEFAULT 0,
	told_n INTEGER NOT NULL DEFAULT 0,
	import_id TEXT NOT NULL DEFAULT '',
	import_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX merchant_opens ON merchant (opens, seq) WHERE closes > 0;
CREATE INDEX merchant_closes ON merchant (closes) WHERE closes > 0;
CREATE INDEX merchant_import ON merchant (import_at) WHERE import_id <> '';

-- writer is who began the thread, as limits and blocks know it: an identity,
-- account, profile or key by name, a network as a hash that is this agent's own.
-- writer_handle is the profile of this node that began it, null when it is gone.
-- messages numbers the messages; unread and unseen count those of the writer and
-- of the agent since the other side last wrote.
CREATE TABLE thread (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	kind       TEXT    NOT NULL CHECK (kind IN ('question', 'quote_request', 'support')),
	state      TEXT    NOT NULL CHECK (state IN ('open', 'answered', 'closed')),
	writer     TEXT    NOT NULL,
	author     TEXT    NOT NULL,
	token_hash BLOB    NOT NULL,
	visitor    BLOB,
	callback   TEXT    NOT NULL,
	messages   INTEGER NOT NULL,
	unread     INTEGER NOT NULL,
	unseen     INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	closed_at  INTEGER,
	closed_by  TEXT    NOT NULL DEFAULT '',
	writer_handle TEXT,
	-- How many messages of a thread its owner has read.
	seen INTEGER NOT NULL DEFAULT 0,
	-- What a chain identity without a profile began and opens with a token: the name of
	-- identity and owner until the identity has another owner (storage/begun.go).
	agent TEXT
) STRICT, WITHOUT ROWID;
-- Lists of one agent are ordered by expressions, each by that of its index
-- (onesOwn): were it the id itself, PostgreSQL would walk over everybody's rows
-- where one agent has many.
CREATE INDEX thread_handle ON thread (handle, (id || ''));
CREATE INDEX thread_state ON thread (handle, state, ('' || id));
CREATE INDEX thread_open ON thread (handle, writer) WHERE state = 'open';
CREATE INDEX thread_writer_handle ON thread (writer_handle) WHERE writer_handle IS NOT NULL;
-- The news of a thread are asked for by its read token.
CREATE INDEX thread_token ON thread (token_hash);
CREATE INDEX thread_new ON thread (handle) WHERE unread > 0 AND messages > seen;
CREATE INDEX thread_agent ON thread (agent) WHERE agent IS NOT NULL;

CREATE TABLE thread_message (
	thread_id TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	id        TEXT    NOT NULL,
	side      TEXT    NOT NULL CHECK (side IN ('writer', 'agent')),
	author    TEXT    NOT NULL,
	text      TEXT    NOT NULL,
	at        INTEGER NOT NULL,
	PRIMARY KEY (thread_id, n)
) STRICT, WITHOUT ROWID;

-- A reply on its way to the address that the writer gave; id is the message's.
CREATE TABLE callback (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	thread_id  TEXT    NOT NULL,
	n          INTEGER NOT NULL,
	url        TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'gone', 'refused', 'failed')),
	attempts   INTEGER NOT NULL,
	tries      INTEGER NOT NULL,
	status     INTEGER NOT NULL,
	last_error TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	next_at    INTEGER NOT NULL,
	until      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX callback_handle ON callback (handle, (id || ''));
CREATE INDEX callback_state ON callback (handle, state, ('' || id));
CREATE INDEX callback_thread ON callback (thread_id, (id || ''));

-- Writers that an agent does not want to hear of, each by every name it is
-- known by. writer is the thread's.
CREATE TABLE contact_block (
	id        TEXT    PRIMARY KEY,
	handle    TEXT    NOT NULL,
	writer    TEXT    NOT NULL,
	author    TEXT    NOT NULL,
	thread_id TEXT    NOT NULL,
	note      TEXT    NOT NULL,
	at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX contact_block_writer ON contact_block (handle, writer);
CREATE INDEX contact_block_handle ON contact_block (handle, (id || ''));

CREATE TABLE contact_block_name (
	handle   TEXT NOT NULL,
	name     TEXT NOT NULL,
	block_id TEXT NOT NULL,
	PRIMARY KEY (handle, name, block_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_block_name_id ON contact_block_name (block_id);

-- An account is somebody's sign-in. mail is an address that was confirmed,
-- asked_mail one that is to be.
CREATE TABLE account (
	id         TEXT    PRIMARY KEY,
	name       TEXT    NOT NULL,
	role       TEXT    NOT NULL CHECK (role IN ('owner', 'operator')),
	mail       TEXT    UNIQUE,
	asked_mail TEXT    NOT NULL DEFAULT '',
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A profile belongs to one account at most; an account has any number.
CREATE TABLE account_profile (
	handle  TEXT    PRIMARY KEY,
	account TEXT    NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX account_profile_account ON account_profile (account, handle);

-- Of secrets only hashes are stored.
CREATE TABLE session (
	id           TEXT    PRIMARY KEY,
	hash         BLOB    NOT NULL UNIQUE,
	account      TEXT    NOT NULL,
	program      TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_account ON session (account, id);
CREATE INDEX session_expires ON session (expires_at);

-- A one-time secret that was handed out: a sign-in link, or by mail
-- the proof that an address can be read.
CREATE TABLE ticket (
	hash       BLOB    PRIMARY KEY,
	purpose    TEXT    NOT NULL CHECK (purpose IN ('sign-in', 'notice-mail', 'account-mail', 'former-mail')),
	account    TEXT    NOT NULL,
	handle     TEXT    NOT NULL,
	mail       TEXT    NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_expires ON ticket (expires_at);
CREATE INDEX ticket_mail ON ticket (mail, purpose, expires_at);
CREATE INDEX ticket_handle ON ticket (handle, purpose, expires_at);
CREATE INDEX ticket_account ON ticket (account, purpose, expires_at);

-- Where notices about a profile go.
CREATE TABLE notify (
	handle     TEXT    PRIMARY KEY,
	mail       TEXT    NOT NULL,
	confirmed  INTEGER NOT NULL CHECK (confirmed IN (0, 1)),
	webhook    TEXT    NOT NULL,
	events     TEXT    NOT NULL,
	updated_at INTEGER NOT NULL,
	-- Notices of bids have links that decide: who set the addresses may decide.
	links INTEGER NOT NULL DEFAULT 1 CHECK (links IN (0, 1))
) STRICT, WITHOUT ROWID;

-- One counter for what is followed as it happens. It is raised at the end of
-- the transaction that writes the rows, so that rows become visible in the order
-- of their numbers: whoever has read up to a number has missed nothing below it.
CREATE TABLE tally (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	head INTEGER NOT NULL
) STRICT;

-- What somebody will want to know when he comes back. An event has one number
-- and a row for each name that its reader may go by.
CREATE TABLE news (
	reader TEXT    NOT NULL,
	n      INTEGER NOT NULL,
	kind   TEXT    NOT NULL,
	ref    TEXT    NOT NULL,
	PRIMARY KEY (reader, n)
) STRICT, WITHOUT ROWID;
-- What is old is found by an expression: an index of n itself would be taken for
-- the news of one reader.
CREATE INDEX news_n ON news ((n + 0));

-- The last number at a time: what is older than a time has no greater one.
CREATE TABLE news_mark (
	n  INTEGER PRIMARY KEY,
	at INTEGER NOT NULL
) STRICT;

-- Who may not write here, or be heard. value is a chain identity, a thumbprint,
-- a keyed hash of a network, a host, a handle of this node, or an actor.
CREATE TABLE block (
	id         TEXT    PRIMARY KEY,
	kind       TEXT    NOT NULL CHECK (kind IN ('agent', 'key', 'network', 'host', 'handle', 'actor')),
	value      TEXT    NOT NULL,
	post       TEXT    NOT NULL,
	reason     TEXT    NOT NULL,
	note       TEXT    NOT NULL,
	actor      TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	UNIQUE (kind, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX block_kind ON block (kind, id);
CREATE INDEX block_expires ON block (expires_at) WHERE expires_at IS NOT NULL;

-- What operators note for one another about a post, a handle, a host, …
CREATE TABLE moderation_note (
	id      TEXT    PRIMARY KEY,
	subject TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	actor   TEXT    NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX moderation_note_subject ON moderation_note (subject, id);

-- What was done and why, as the public may read it.
CREATE TABLE moderation_log (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	at      INTEGER NOT NULL,
	action  TEXT    NOT NULL,
	kind    TEXT    NOT NULL,
	subject TEXT    NOT NULL,
	reason  TEXT    NOT NULL
) STRICT;

-- Visible posts with reports that nobody has decided about.
CREATE TABLE review (
	seq     INTEGER PRIMARY KEY,
	post_id TEXT    NOT NULL
) STRICT;

-- From which network an anonymous post came: a keyed hash, kept for a while, so
-- that whoever wrote a post can be blocked.
CREATE TABLE writer (
	post_id TEXT PRIMARY KEY,
	network TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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
CREATE INDEX probe_verified ON probe (kind, alive) WHERE kind = 'chain' AND alive = 'alive';

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

-- The id that an agent gave to its message of a thread (A2A messageId).
CREATE TABLE client_message (
	thread_id TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	client_id TEXT    NOT NULL,
	PRIMARY KEY (thread_id, n)
) STRICT, WITHOUT ROWID;

-- Posts that came with an archive of a profile: they stay those of the node that
-- made them, and go into the profile's next archive. They have no
-- feed item: they are no news. The handle is '' once the profile is gone.
CREATE TABLE archive_post (
	handle TEXT   NOT NULL,
	seq    INTEGER NOT NULL,
	PRIMARY KEY (handle, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX archive_post_seq ON archive_post (seq);

-- Imports of archives. state is 'staging' while the archive is being laid down,
-- 'running' from the moment its profile is here, 'done' when all of it is. done
-- counts the records that came after the profile; holder is who is at it, and at
-- when it last was. A running import is finished by whoever finds it left.
CREATE TABLE archive_import (
	id     TEXT    PRIMARY KEY,
	handle TEXT    NOT NULL,
	state  TEXT    NOT NULL CHECK (state IN ('staging', 'running', 'done')),
	holder TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	done   INTEGER NOT NULL,
	ruling BLOB    NOT NULL,
	report BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX archive_import_handle ON archive_import (handle) WHERE state = 'running';
CREATE INDEX archive_import_at ON archive_import (at);

-- The bytes of the archive, in order, until it is imported.
CREATE TABLE archive_piece (
	import_id TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	bytes     BLOB    NOT NULL,
	PRIMARY KEY (import_id, n)
) STRICT;

-- What processes of one deployment tell one another of what callers used up, so
-- that rates and prices are of all of them. Kept for a minute.
CREATE TABLE usage (
	process TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	doc     BLOB    NOT NULL,
	PRIMARY KEY (process, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_at ON usage (at);

-- What the chain said when a profile was enrolled to a chain identity; identity and
-- key are erc8004 and key_hash of the profile. owner '' is not known yet: the next
-- look at the chain fills it in. A row with ended_at says how the last one ended.
CREATE TABLE enrolment (
	handle     TEXT    PRIMARY KEY,
	erc8004    TEXT    NOT NULL,
	owner      TEXT    NOT NULL,
	wallet     TEXT    NOT NULL,
	block      INTEGER NOT NULL,
	block_hash TEXT    NOT NULL,
	made_at    INTEGER NOT NULL,
	ended_at   INTEGER,
	reason     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
-- Who owns a chain identity may sign in with that Ethereum account.
CREATE INDEX enrolment_owner ON enrolment (owner, handle);

-- Servers that fetched a post, signed by an actor of theirs, and do not follow:
-- they are told when it is hidden or deleted. Capped: see cap.go.
CREATE TABLE reader (
	id      INTEGER PRIMARY KEY,
	post_id TEXT NOT NULL,
	host    TEXT NOT NULL,
	actor   TEXT NOT NULL,
	at      INTEGER NOT NULL,
	UNIQUE (post_id, host)
) STRICT;
CREATE INDEX reader_at ON reader (at);

-- A job that has to wait for its lane is blocked and not looked at: a claim sees
-- only jobs that could run, whatever waits after them. A lane has a row while one
-- of its jobs holds it: is due, runs, or waits for another try. A row without job
-- is free for the oldest job that is blocked.
CREATE TABLE lane (
	name TEXT PRIMARY KEY,
	job  INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX lane_job ON lane (job) WHERE job IS NOT NULL;
CREATE INDEX lane_free ON lane (name) WHERE job IS NULL;

CREATE TABLE follower_count (
	local_actor TEXT    PRIMARY KEY,
	n           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Author's signatures that counted for a post are remembered for years. They leave
-- the table of spent nonces, every row of which is looked at each hour.
CREATE TABLE used_signature (
	key   BLOB    PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_signature_until ON used_signature (until);

-- doc holds the board's terms. handle is null once the profile is deleted: what
-- was paid stays on record, and the next owner of the handle does not get it.
-- listed says that the board is in the list: open, of a listed profile.
CREATE TABLE attention_board (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT    NOT NULL UNIQUE,
	handle     TEXT    UNIQUE,
	open       INTEGER NOT NULL CHECK (open IN (0, 1)),
	listed     INTEGER NOT NULL CHECK (listed IN (0, 1)),
	account    TEXT,
	doc        TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	disputes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX attention_board_listed ON attention_board (seq) WHERE listed;

-- Folded categories of listed boards.
CREATE TABLE attention_category (
	category TEXT    NOT NULL,
	seq      INTEGER NOT NULL,
	PRIMARY KEY (category, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX attention_category_board ON attention_category (seq);

-- Where bids are paid to. The newest of a profile without retired_at is in use;
-- others are kept as long as a bid may have to be refunded by them. hook is the
-- last part of the address of the provider's webhook.
CREATE TABLE payment_account (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	provider   TEXT    NOT NULL CHECK (provider IN ('upi', 'razorpay', 'sandbox')),
	hook       TEXT    NOT NULL UNIQUE,
	doc        TEXT    NOT NULL,
	sealed     BLOB,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	retired_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_account_handle ON payment_account (handle, id);

-- slot_no is a token of the board's capacity, from 1; two bids never have the
-- same. hold_until ends the hold of an unpaid bid, or of a claimed payment.
CREATE TABLE bid (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('held', 'claimed', 'unconfirmed', 'lapsed', 'withdrawn', 'live', 'outbid', 'ended', 'removed', 'unanswered', 'refund_due', 'refunding', 'refunded', 'refund_failed')),
	hold       TEXT    NOT NULL CHECK (hold IN ('', 'reserving', 'competing')),
	slot_no    INTEGER CHECK (slot_no IS NULL OR state IN ('held', 'claimed', 'live')),
	paise      INTEGER NOT NULL CHECK (paise > 0),
	bidder     TEXT    NOT NULL,
	anonymous  INTEGER NOT NULL CHECK (anonymous IN (0, 1)),
	test       INTEGER NOT NULL CHECK (test IN (0, 1)),
	denied     INTEGER NOT NULL DEFAULT 0 CHECK (denied IN (0, 1)),
	paid       INTEGER NOT NULL DEFAULT 0 CHECK (paid IN (0, 1)),
	utr        TEXT,
	account    TEXT    NOT NULL,
	token_hash BLOB    NOT NULL,
	pay_hash   BLOB    NOT NULL,
	bid_at     INTEGER NOT NULL,
	hold_until INTEGER,
	free_at    INTEGER,
	moved_at   INTEGER NOT NULL,
	moves      INTEGER NOT NULL,
	doc        TEXT    NOT NULL,
	agent TEXT,
	-- An undecided dispute of a payment that the owner did not confirm: by whom, ''
	-- for a stranger; null without one. disputes counts the known ones of a board.
	dispute TEXT,
	CHECK (state <> 'live' OR slot_no IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX bid_slot ON bid (board, slot_no) WHERE slot_no IS NOT NULL;
CREATE UNIQUE INDEX bid_token ON bid (token_hash);
CREATE UNIQUE INDEX bid_pay ON bid (pay_hash);
CREATE UNIQUE INDEX bid_claim ON bid (board, utr) WHERE state = 'claimed' AND utr IS NOT NULL;
CREATE INDEX bid_held ON bid (board, hold_until) WHERE state = 'held';
CREATE INDEX bid_claimed ON bid (board, hold_until) WHERE state = 'claimed';
CREATE INDEX bid_bidder ON bid (bidder, board) WHERE state IN ('held', 'claimed');
CREATE INDEX bid_lapsed ON bid (bidder, moved_at) WHERE state = 'lapsed';
CREATE INDEX bid_denied ON bid (bidder, board) WHERE denied;
CREATE INDEX bid_unpaid ON bid (moved_at) WHERE NOT paid AND state IN ('lapsed', 'withdrawn', 'unconfirmed');
CREATE INDEX bid_board ON bid (board, (id || ''));
CREATE INDEX bid_state ON bid (board, state, ('' || id));
CREATE INDEX bid_network ON bid (bidder) WHERE paid AND anonymous;
-- The secrets of a payment account are kept while one of its bids may be paid.
CREATE INDEX bid_account ON bid (account, state, moved_at);
CREATE INDEX bid_agent ON bid (agent) WHERE agent IS NOT NULL;
CREATE INDEX bid_utr ON bid (utr) WHERE utr IS NOT NULL;
CREATE INDEX bid_dispute ON bid (board, dispute) WHERE dispute IS NOT NULL;
CREATE INDEX bid_disputed ON bid (board, (id || '')) WHERE dispute IS NOT NULL;
CREATE INDEX bid_unconfirmed ON bid (board, anonymous, moved_at) WHERE state = 'unconfirmed';

-- Every state of a bid, in order.
CREATE TABLE bid_move (
	bid   TEXT    NOT NULL,
	n     INTEGER NOT NULL,
	state TEXT    NOT NULL,
	at    INTEGER NOT NULL,
	note  TEXT    NOT NULL,
	PRIMARY KEY (bid, n)
) STRICT, WITHOUT ROWID;

-- Events of payment providers, as received, once. The signature was checked
-- before. done_at is null until the job has applied it.
CREATE TABLE pay_event (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	provider TEXT    NOT NULL,
	account  TEXT    NOT NULL,
	event_id TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	raw      BLOB    NOT NULL,
	head     TEXT    NOT NULL,
	done_at  INTEGER,
	outcome  TEXT    NOT NULL DEFAULT '',
	-- What an event is about: the bid of its link and the id of its payment, '' where
	-- it names none.
	bid TEXT NOT NULL DEFAULT '',
	payment_id TEXT NOT NULL DEFAULT '',
	UNIQUE (account, event_id)
) STRICT;
CREATE INDEX pay_event_done ON pay_event (done_at) WHERE done_at IS NOT NULL;
-- By what a payment is looked for: its payer's or its provider's ids.
CREATE INDEX pay_event_bid ON pay_event (bid, id) WHERE bid <> '';
CREATE INDEX pay_event_payment ON pay_event (payment_id, id) WHERE payment_id <> '';
CREATE INDEX pay_event_named ON pay_event (event_id);

-- Money that came in. payee is what the provider's payment ids are unique within.
CREATE TABLE payment (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	bid        TEXT    NOT NULL,
	account    TEXT    NOT NULL,
	provider   TEXT    NOT NULL,
	payee      TEXT    NOT NULL,
	payment_id TEXT    NOT NULL,
	paise      INTEGER NOT NULL CHECK (paise > 0),
	placed     INTEGER NOT NULL CHECK (placed IN (0, 1)),
	test       INTEGER NOT NULL CHECK (test IN (0, 1)),
	paid_at    INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	-- The bank's reference of a payment, '' where the provider gives none.
	reference TEXT NOT NULL DEFAULT '',
	-- The currency of a payment, and of what goes back of it: paise counts the minor
	-- units of that currency.
	currency TEXT NOT NULL DEFAULT 'INR',
	UNIQUE (provider, payee, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_bid ON payment (bid);
CREATE UNIQUE INDEX payment_placed ON payment (bid) WHERE placed;
CREATE INDEX payment_board ON payment (board, (id || ''));
CREATE INDEX payment_named ON payment (payment_id);
CREATE INDEX payment_reference ON payment (reference) WHERE reference <> '';

-- Money that goes back. id is also the idempotency key. whole says that it is the
-- refund of the bid itself, whose state follows it, and not of what was paid
-- twice, too little or too much.
CREATE TABLE refund (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	bid        TEXT    NOT NULL,
	payment    TEXT    NOT NULL,
	paise      INTEGER NOT NULL CHECK (paise > 0),
	why        TEXT    NOT NULL,
	whole      INTEGER NOT NULL CHECK (whole IN (0, 1)),
	state      TEXT    NOT NULL CHECK (state IN ('due', 'ordered', 'manual', 'failed', 'done')),
	reference  TEXT    NOT NULL DEFAULT '',
	tries      INTEGER NOT NULL DEFAULT 0,
	last_error TEXT    NOT NULL DEFAULT '',
	until      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	done_at    INTEGER,
	-- round counts the idempotency keys of a refund: a refund that failed at the
	-- provider is made again under the next one. unsure: a request under the present
	-- key had no answer.
	round  INTEGER NOT NULL DEFAULT 0,
	unsure INTEGER NOT NULL DEFAULT 0 CHECK (unsure IN (0, 1)),
	currency TEXT NOT NULL DEFAULT 'INR'
) STRICT, WITHOUT ROWID;
CREATE INDEX refund_bid ON refund (bid);
CREATE INDEX refund_payment ON refund (payment);
CREATE INDEX refund_open ON refund (board) WHERE state <> 'done';
CREATE INDEX refund_reference ON refund (reference) WHERE reference <> '';

-- Append-only: what came in is positive, what went back negative.
CREATE TABLE ledger (
	n       INTEGER PRIMARY KEY AUTOINCREMENT,
	board   TEXT    NOT NULL,
	bid     TEXT    NOT NULL,
	payment TEXT    NOT NULL,
	refund  TEXT    NOT NULL DEFAULT '',
	paise   INTEGER NOT NULL CHECK (paise <> 0),
	at      INTEGER NOT NULL,
	UNIQUE (payment, refund)
) STRICT;
CREATE INDEX ledger_board ON ledger (board, at);

-- Receipts are numbered by board and financial year, without gaps.
CREATE TABLE receipt_no (
	board   TEXT    NOT NULL,
	year    TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	payment TEXT    NOT NULL UNIQUE,
	at      INTEGER NOT NULL,
	doc     TEXT    NOT NULL,
	PRIMARY KEY (board, year, n)
) STRICT, WITHOUT ROWID;

-- The bids in the feed, this node's and those of other nodes, under every name
-- by which an operator may block their author (kind:value), and, for a bid of
-- another node, under its ActivityPub id (uri:…).
CREATE TABLE bid_author (
	name       TEXT NOT NULL,
	subject_id TEXT NOT NULL,
	PRIMARY KEY (name, subject_id)
) STRICT, WITHOUT ROWID;

-- When a person takes meetings, and how: doc holds the rules as their owner wrote
-- them.
CREATE TABLE meeting_rules (
	handle     TEXT    PRIMARY KEY,
	doc        TEXT    NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Meeting requests. shown says that the person may see it: its mailbox was
-- confirmed, or the node sends no mail. mailbox is a keyed hash. due_at is when it
-- expires, is done or is deleted by itself. mail_until is when the address in doc
-- is deleted; null once it is.
CREATE TABLE meeting (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('unconfirmed', 'submitted', 'proposed', 'approved', 'declined', 'withdrawn', 'expired', 'cancelled', 'done', 'no_show')),
	shown      INTEGER NOT NULL CHECK (shown IN (0, 1)),
	starts_at  INTEGER NOT NULL,
	ends_at    INTEGER NOT NULL CHECK (ends_at > starts_at),
	requester  TEXT    NOT NULL,
	mailbox    BLOB    NOT NULL,
	token_hash BLOB    NOT NULL,
	asked_at   INTEGER NOT NULL,
	due_at     INTEGER,
	mail_until INTEGER,
	moved_at   INTEGER NOT NULL,
	moves      INTEGER NOT NULL,
	sequence   INTEGER NOT NULL,
	doc        TEXT    NOT NULL,
	agent TEXT,
	-- Whether who asked is known to the node, or has confirmed the mailbox; and when a known caller last had mail sent there.
	known INTEGER NOT NULL DEFAULT 1 CHECK (known IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX meeting_token ON meeting (token_hash);
CREATE INDEX meeting_owner ON meeting (handle, (id || '')) WHERE shown;
CREATE INDEX meeting_state ON meeting (handle, state, ('' || id)) WHERE shown;
CREATE INDEX meeting_left ON meeting (handle, id);
CREATE INDEX meeting_time ON meeting (handle, starts_at) WHERE state IN ('submitted', 'approved');
CREATE INDEX meeting_requester_waits ON meeting (requester, handle) WHERE state IN ('unconfirmed', 'submitted', 'proposed');
CREATE INDEX meeting_requester ON meeting (requester, asked_at);
CREATE INDEX meeting_over ON meeting (moved_at) WHERE state IN ('declined', 'withdrawn', 'expired', 'cancelled', 'done', 'no_show');
CREATE INDEX meeting_mail ON meeting (mail_until) WHERE mail_until IS NOT NULL;
CREATE INDEX meeting_agreed ON meeting (handle, ends_at) WHERE state IN ('approved', 'done', 'no_show', 'cancelled');
-- A person's meetings by their times, for one week after another.
CREATE INDEX meeting_agenda ON meeting (handle, starts_at, id) WHERE state IN ('submitted', 'approved', 'done', 'no_show');
CREATE INDEX meeting_agent ON meeting (agent) WHERE agent IS NOT NULL;
CREATE INDEX meeting_unconfirmed ON meeting (handle, known, asked_at) WHERE state = 'unconfirmed';
CREATE INDEX meeting_mailbox_waits ON meeting (mailbox, id) WHERE state IN ('unconfirmed', 'submitted', 'proposed');

-- What limits mail about meetings to one mailbox, by a keyed hash of it. sent is
-- how many confirmation mails it got since a link was used last.
CREATE TABLE meeting_mailbox (
	hash    BLOB    PRIMARY KEY,
	sent_at INTEGER NOT NULL,
	sent    INTEGER NOT NULL,
	stopped INTEGER NOT NULL CHECK (stopped IN (0, 1)),
	-- Mail to the mailbox came back for good.
	bounced INTEGER NOT NULL DEFAULT 0 CHECK (bounced IN (0, 1)),
	known_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_mailbox_sent ON meeting_mailbox (sent_at) WHERE NOT stopped;
-- Mailboxes that want no mail, oldest first: their number is bounded too.
CREATE INDEX meeting_mailbox_stopped ON meeting_mailbox (sent_at) WHERE stopped;

-- Accounts at calendar servers of persons that take meetings. sealed is the
-- password. doc has the calendars that were found, and which are read and written.
CREATE TABLE calendar_account (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	sealed     BLOB    NOT NULL,
	doc        TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX calendar_account_handle ON calendar_account (handle, id);

-- Busy times of an account whose calendars are read, packed. read_at is when they
-- were read last; 0 for never.
CREATE TABLE calendar_busy (
	account TEXT    PRIMARY KEY,
	handle  TEXT    NOT NULL,
	read_at INTEGER NOT NULL,
	spans   BLOB    NOT NULL
) STRICT;
CREATE INDEX calendar_busy_handle ON calendar_busy (handle);

-- Which event of an approved meeting is on which calendar, until 31 days after the
-- meeting.
CREATE TABLE meeting_event (
	meeting TEXT    PRIMARY KEY,
	handle  TEXT    NOT NULL,
	account TEXT    NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('pending', 'written', 'removed', 'failed')),
	until   INTEGER NOT NULL,
	doc     TEXT    NOT NULL
) STRICT;
CREATE INDEX meeting_event_handle ON meeting_event (handle);
CREATE INDEX meeting_event_account ON meeting_event (account, state, meeting);
CREATE INDEX meeting_event_until ON meeting_event (until);

-- The address of a person's feed of meetings, by the hash of its secret.
CREATE TABLE meeting_feed (
	handle  TEXT    PRIMARY KEY,
	hash    BLOB    NOT NULL UNIQUE,
	made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Invitations as they are sent, until they are: an attempt sends what the one
-- before sent. sealed is encrypted, since their links act for the requester.
CREATE TABLE meeting_letter (
	id      TEXT    PRIMARY KEY,
	sealed  BLOB    NOT NULL,
	ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_letter_end ON meeting_letter (ends_at);

-- A passkey of an account (WebAuthn): credential is the id that its authenticator gave
-- it, domain the one that it is for, public_key a COSE key. suspect: its counter went
-- back, so that it signs nobody in any more.
CREATE TABLE passkey (
	id              TEXT    PRIMARY KEY,
	credential      BLOB    NOT NULL UNIQUE,
	account         TEXT    NOT NULL,
	domain          TEXT    NOT NULL,
	name            TEXT    NOT NULL,
	public_key      BLOB    NOT NULL,
	sign_count      INTEGER NOT NULL,
	backup_eligible INTEGER NOT NULL CHECK (backup_eligible IN (0, 1)),
	backed_up       INTEGER NOT NULL CHECK (backed_up IN (0, 1)),
	transports      TEXT    NOT NULL,
	suspect         INTEGER NOT NULL CHECK (suspect IN (0, 1)),
	created_at      INTEGER NOT NULL,
	last_used_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_account ON passkey (account, id);

-- A recovery code signs in to its account once. Only hashes are stored.
CREATE TABLE recovery_code (
	hash    BLOB    PRIMARY KEY,
	account TEXT    NOT NULL,
	made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX recovery_code_account ON recovery_code (account, made_at);

-- What the node did within an hour, for the operators' charts: n of one kind. hour is
-- its beginning in Unix milliseconds. Rows are kept for 32 days.
CREATE TABLE traffic (
	hour INTEGER NOT NULL,
	what TEXT NOT NULL,
	n    INTEGER NOT NULL,
	PRIMARY KEY (hour, what)
) STRICT, WITHOUT ROWID;

-- The items of merchants. pos is the number of an item, doubled, and the slot of the
-- row: an item has a second row while an import replaces the first. A row is on sale
-- for versions of the merchant's catalog from since to before until; away_at is when
-- it left. indexed says that its words are in item_word.
CREATE TABLE item (
	pos      INTEGER PRIMARY KEY,
	seq      INTEGER NOT NULL,
	sku      TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	since    INTEGER NOT NULL,
	until    INTEGER NOT NULL,
	place    INTEGER NOT NULL,
	doc      TEXT    NOT NULL,
	digest   INTEGER NOT NULL,
	currency TEXT,
	low      INTEGER,
	high     INTEGER,
	indexed  INTEGER NOT NULL DEFAULT 0,
	told     INTEGER NOT NULL DEFAULT 0,
	away_at  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX item_place ON item (seq, place, pos);
CREATE INDEX item_sku ON item (seq, sku, pos);
CREATE INDEX item_id ON item (id);
CREATE INDEX item_told ON item (seq) WHERE told = 1;
-- The items of a merchant by number: what a search in one shop reads first.
CREATE INDEX item_by_number ON item (seq, pos);

CREATE VIRTUAL TABLE item_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- What the directory finds a merchant by because it sells it.
CREATE TABLE merchant_word (
	seq   INTEGER PRIMARY KEY,
	words TEXT NOT NULL
) STRICT;

-- Receipts for orders that a buyer paid. n counts those of a shop; token is the signed receipt, and doc has
-- the line items and adjustments.
CREATE TABLE order_receipt (
    id         TEXT PRIMARY KEY,
    handle     TEXT NOT NULL,
    n          INTEGER NOT NULL,
    order_id   TEXT NOT NULL,
    agent      TEXT NOT NULL,
    client     TEXT NOT NULL,
    buyer      TEXT NOT NULL,
    currency   TEXT NOT NULL,
    minor      INTEGER NOT NULL,
    paid_at    INTEGER NOT NULL,
    issued_at  INTEGER NOT NULL,
    revoked_at INTEGER,
    reason     TEXT NOT NULL,
    token      TEXT NOT NULL,
    doc        TEXT NOT NULL,
	-- The node that issued a receipt which came with an archive; empty for receipts of this node.
	issuer TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX order_receipt_n ON order_receipt (handle, n);
CREATE INDEX order_receipt_order ON order_receipt (handle, order_id, n);

-- Feedback for chain identities of businesses here, from a reputation registry (ERC-8004). agent is the
-- identity; place orders feedback as the chain does. proof is the order or payment that the file names.
CREATE TABLE feedback (
    id      TEXT PRIMARY KEY,
    agent   TEXT NOT NULL,
    client  TEXT NOT NULL,
    idx     INTEGER NOT NULL,
    block   INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    state   TEXT NOT NULL,
    reason  TEXT NOT NULL,
    rating  INTEGER NOT NULL,
    proof   TEXT NOT NULL,
    next_at INTEGER,
    tries   INTEGER NOT NULL,
    feed_id TEXT NOT NULL,
    doc     TEXT NOT NULL,
	-- When an operator hid the text of a review, and the public reason.
	hidden_at INTEGER,
	hidden_why TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX feedback_given ON feedback (agent, client, idx);
CREATE INDEX feedback_listed ON feedback (agent, state, place);
CREATE INDEX feedback_due ON feedback (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX feedback_waiting ON feedback (agent, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX feedback_block ON feedback (block);
CREATE INDEX feedback_claims ON feedback (proof) WHERE proof <> '';
CREATE INDEX feedback_hidden ON feedback (id) WHERE hidden_at IS NOT NULL;

-- Orders and payments that a counted review has proved: each is good for one.
CREATE TABLE feedback_proof (
    name     TEXT PRIMARY KEY,
    feedback TEXT NOT NULL
);
CREATE INDEX feedback_proof_of ON feedback_proof (feedback);

-- The counted reviews of an identity; stars is the sum of their ratings, in hundredths of a point of 0 to 100.
CREATE TABLE feedback_sum (
    agent   TEXT PRIMARY KEY,
    reviews INTEGER NOT NULL,
    stars   INTEGER NOT NULL
);

-- Up to which block the events of a registry were read. An identity that is new here is read by itself,
-- up to where the registry is; then its block is NULL.
CREATE TABLE feedback_mark (
    registry TEXT PRIMARY KEY,
    block    INTEGER NOT NULL,
    hash     TEXT NOT NULL
);

CREATE TABLE feedback_agent (
    agent    TEXT PRIMARY KEY,
    registry TEXT NOT NULL,
    block    INTEGER,
	-- Whose reviews of an identity count: those of owner, from the place since on, at the time since_at.
	owner TEXT NOT NULL DEFAULT '',
	since INTEGER NOT NULL DEFAULT 0,
	since_at INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX feedback_agent_behind ON feedback_agent (registry, block) WHERE block IS NOT NULL;
CREATE INDEX feedback_agent_of ON feedback_agent (registry, agent);

-- The prices of items whose words are in item_word: a row for each price of an item, in
-- minor units.
CREATE TABLE item_price (
	seq      INTEGER NOT NULL,
	currency TEXT NOT NULL,
	minor    INTEGER NOT NULL,
	pos      INTEGER NOT NULL,
	PRIMARY KEY (seq, currency, minor, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_price_pos ON item_price (pos);

-- What happened at a place, a profile or the node (handle ''), in parts of ten minutes, for a day.
CREATE TABLE crowd (
	handle TEXT    NOT NULL,
	what   TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	until  INTEGER NOT NULL,
	PRIMARY KEY (handle, what, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX crowd_until ON crowd (until);

-- How often a batch changed tables of a group (storage/generation.go).
CREATE TABLE generation (
	name TEXT    PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rows that tables of one row begin with.
INSERT INTO profile_clock (id, now, pruned) VALUES (1, 0, 0);
INSERT INTO tally (one, head) VALUES (1, 0);
