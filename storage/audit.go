package storage

import (
	"context"
	"math"
	"time"

	"stoa/protocol"
)

// An AuditEntry is one action of an operator, owner or peer.
type AuditEntry struct {
	ID                             int64
	Actor, Action, Subject, Detail string
	At                             time.Time
}

// Audit records an action, in the transaction that does it.
func (tx *Tx) Audit(ctx context.Context, actor, action, subject, detail string) error {
	_, err := tx.write(ctx, `INSERT INTO audit (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)`, millis(tx.Now), actor, action, subject, detail)
	return err
}

const auditQuery = `SELECT id, at, actor, action, subject, detail FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?`

// AuditLog reads the actions of operators, owners and peers; [Tx.Audit] adds one.
type AuditLog struct{ tx *Tx }

func (tx *Tx) AuditLog() AuditLog { return AuditLog{tx} }

// List returns the audit log, newest first.
func (al AuditLog) List(ctx context.Context, limit int, after string) (protocol.Page[AuditEntry], error) {
	limit = bounded(limit)
	const listing = "audit"
	before, err := position(listing, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[AuditEntry]{}, err
	}
	rows, err := al.tx.query(ctx, auditQuery, before, limit+1)
	entries, err := collect(rows, err, func(s scanner) (e AuditEntry, err error) {
		var at int64
		err = s.Scan(&e.ID, &at, &e.Actor, &e.Action, &e.Subject, &e.Detail)
		e.At = moment(at)
		return e, err
	})
	return page(entries, limit, listing, func(e AuditEntry) string { return number(e.ID) }), err
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
