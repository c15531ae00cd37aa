package storage

import "context"

// A FeedbackMark is the block up to which the events of a reputation registry were read.
type FeedbackMark struct {
	Block uint64
	Hash  string
}

// Mark returns how far the events of a registry were read; ok is false when never.
func (fs Feedbacks) Mark(ctx context.Context, registry string) (m FeedbackMark, ok bool, err error) {
	m, err = find[FeedbackMark](ctx, fs.tx, `SELECT block, hash FROM feedback_mark WHERE registry = ?`, registry)
	return m, err == nil, orNothing(err)
}

// MoveMark moves the mark of a registry; false when it is no longer where the caller read it, so that
// two processes never store one slice twice.
func (fs Feedbacks) MoveMark(ctx context.Context, registry string, from *FeedbackMark, to FeedbackMark) (bool, error) {
	if from == nil {
		n, err := fs.tx.write(ctx, `INSERT INTO feedback_mark (registry, block, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, registry, int64(to.Block), to.Hash)
		return n > 0, err
	}
	n, err := fs.tx.write(ctx, `UPDATE feedback_mark SET block = ?, hash = ? WHERE registry = ? AND block = ? AND hash = ?`,
		int64(to.Block), to.Hash, registry, int64(from.Block), from.Hash)
	return n > 0, err
}

// A FeedbackAgent is a business that is enrolled to an identity.
type FeedbackAgent struct {
	Agent, Handle string
	Owner, Wallet string // of the enrolment, in lower case; "" when the chain was not asked yet, or for no wallet
	Known         bool   // its events are read
	Behind        *int64 // the block up to which, when not as far as those of the registry
	From          uint64 // the newest final block when it was enrolled: it had this owner by then
}

// Agents returns the businesses that are enrolled to identities of a registry, in the order of those.
func (fs Feedbacks) Agents(ctx context.Context, registry string) ([]FeedbackAgent, error) {
	kind := `p.draft ->> '$.kind'`
	if fs.tx.db.engine == enginePostgres {
		kind = `p.draft::json ->> 'kind'`
	}
	return list[FeedbackAgent](ctx, fs.tx, `SELECT p.erc8004 AS agent, p.handle, COALESCE(e.owner, '') AS owner, COALESCE(e.wallet, '') AS wallet,
		f.agent IS NOT NULL AS known, f.block AS behind, COALESCE(e.block, 0) AS "from"
		FROM profile p LEFT JOIN feedback_agent f ON f.agent = p.erc8004
		LEFT JOIN enrolment e ON e.handle = p.handle AND e.erc8004 = p.erc8004 AND e.ended_at IS NULL
		WHERE p.erc8004 > ? AND p.erc8004 < ? AND `+kind+` = 'business' ORDER BY p.erc8004`, registry+":", registry+";")
}

// Agent returns the business that is enrolled to an identity now; ErrNotFound when none is.
func (fs Feedbacks) Agent(ctx context.Context, agent string) (FeedbackAgent, error) {
	e, err := fs.tx.Enrolments().ByIdentity(ctx, agent)
	return FeedbackAgent{Agent: agent, Handle: e.Handle, Owner: e.Owner, Wallet: e.Wallet}, err
}

// PutAgent stores up to which block the events of an identity were read, when not as far as those of
// the registry; nil: as far. The owner is stored for one that is new.
func (fs Feedbacks) PutAgent(ctx context.Context, registry string, a FeedbackAgent, behind *int64) error {
	if _, err := fs.tx.write(ctx, `INSERT INTO feedback_agent (agent, registry, block, owner) VALUES (?, ?, ?, ?)
		ON CONFLICT (agent) DO UPDATE SET block = excluded.block`, a.Agent, registry, behind, a.Owner); err != nil {
		return err
	}
	return fs.show(ctx, a.Agent)
}

// KeepPlace notes, for identities that no profile has any more, up to which block their events were read.
// They continue there when a profile is enrolled to them again.
func (fs Feedbacks) KeepPlace(ctx context.Context, registry string, block uint64) error {
	return fs.tx.exec(ctx, `UPDATE feedback_agent SET block = ? WHERE registry = ? AND block IS NULL
		AND NOT EXISTS (SELECT 1 FROM profile p WHERE p.erc8004 = feedback_agent.agent)`, int64(block), registry)
}
