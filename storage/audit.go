package storage

import (
	"cmp"
	"context"
	"time"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// An AuditEntry is one action of an operator, owner or peer.
type AuditEntry struct {
	ID                             int64 `db:",auto"`
	Actor, Action, Subject, Detail string
	At                             time.Time
}

var auditTable = tableOf[AuditEntry]("audit")

// Audit records an action, in the transaction that does it.
func (tx *Tx) Audit(ctx context.Context, actor, action, subject, detail string) error {
	return auditTable.insert(ctx, tx, &AuditEntry{Actor: actor, Action: action, Subject: subject, Detail: detail, At: tx.Now})
}

func auditQuery(actor, action string) (string, []any) {
	where, args := "", []any{}
	if actor != "" {
		where, args = where+`actor = ? AND `, append(args, actor)
	}
	if action != "" {
		where, args = where+`action || '' = ? AND `, append(args, action)
	}
	return auditTable.from + `WHERE ` + where + `id < ? ORDER BY id DESC LIMIT ?`, args
}

// AuditLog reads the actions of operators, owners and peers; [Tx.Audit] adds one.
type AuditLog struct{ tx *Tx }

func (tx *Tx) AuditLog() AuditLog { return AuditLog{tx} }

// List returns the audit log, newest first: of one actor, of one action, or "" for all.
func (al AuditLog) List(ctx context.Context, actor, action string, limit int, after string) (protocol.Page[AuditEntry], error) {
	text, args := auditQuery(actor, action)
	return newest[AuditEntry](ctx, al.tx, "audit", "id", limit, after, text, args...)
}

var auditOf = auditTable.from + `WHERE action || '' = ? AND subject = ? ORDER BY id DESC LIMIT 20`

// Of returns the newest entries about a subject, up to twenty of each action, newest first.
// It reads every entry with these actions until it has them.
func (al AuditLog) Of(ctx context.Context, subject string, actions ...string) (all []AuditEntry, err error) {
	for _, action := range actions {
		some, err := list[AuditEntry](ctx, al.tx, auditOf, action, subject)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	sorting.Stable(all, func(a, b AuditEntry) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}

// Forget removes from the entries of an account, or of another actor, what its owner wrote.
func (al AuditLog) Forget(ctx context.Context, actor string) error {
	return al.tx.exec(ctx, `UPDATE audit SET detail = '' WHERE actor = ? AND detail <> ''`, actor)
}

const (
	// toldByPeers selects the actions that other nodes cause.
	toldByPeers = `action IN ('kept-out', 'flag')`
	oldTold     = toldByPeers + ` AND at < ? ORDER BY at LIMIT 1000`
	oldAudit    = `at < ? ORDER BY at LIMIT 1000`
)

// Prune deletes what other nodes caused before told and all other entries
// before all, at most a thousand of each per call, and returns how many.
func (al AuditLog) Prune(ctx context.Context, told, all time.Time) (int, error) {
	peers, err := al.tx.deleteSome(ctx, "audit", "id", oldTold, millis(told))
	if err != nil {
		return 0, err
	}
	rest, err := al.tx.deleteSome(ctx, "audit", "id", oldAudit, millis(all))
	return peers + rest, err
}
