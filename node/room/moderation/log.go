package moderation

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"stoa/protocol"
	"stoa/storage"
)

// PublicLog lists what was done and why.
func (m *Moderation) PublicLog(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.LogQuery) (protocol.Page[protocol.ModerationEntry], error) {
	return tx.Moderation().ListLog(ctx, in.Limit, in.After)
}

// Audit lists every action of the operators.
func (m *Moderation) Audit(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.AuditQuery) (protocol.Page[protocol.AuditEntry], error) {
	page, err := tx.AuditLog().List(ctx, in.Actor, in.Action, in.Limit, in.After)
	out := protocol.Page[protocol.AuditEntry]{Items: []protocol.AuditEntry{}, Next: page.Next}
	for _, e := range page.Items {
		out.Items = append(out.Items, protocol.AuditEntry{
			ID: strconv.FormatInt(e.ID, 10), At: e.At, Actor: e.Actor, Action: e.Action, Subject: e.Subject, Detail: e.Detail, Untrusted: true,
		})
	}
	return out, err
}

// AddNote stores a note about a subject.
func (m *Moderation) AddNote(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewNote) (protocol.ModerationNote, error) {
	n := protocol.ModerationNote{ID: protocol.NewID(protocol.NoteID, tx.Now), Subject: in.Subject, Text: in.Text, Actor: actor(c), At: tx.Now}
	if err := tx.Moderation().InsertNote(ctx, n); err != nil {
		return n, err
	}
	return n, tx.Audit(ctx, actor(c), "note", in.Subject, "")
}

// Notes lists notes.
func (m *Moderation) Notes(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.NoteQuery) (protocol.Page[protocol.ModerationNote], error) {
	return tx.Moderation().ListNotes(ctx, in)
}

// DeleteNote deletes a note.
func (m *Moderation) DeleteNote(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NoteRef) (protocol.None, error) {
	subject, err := tx.Moderation().DeleteNote(ctx, in.ID)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no note with that id"))
	}
	return protocol.None{}, tx.Audit(ctx, actor(c), "note delete", subject, "")
}

// limitsSetting is the name of the setting that stores the limits.
const limitsSetting = "limits"

// StoredLimits returns the limits that were set at run time.
func StoredLimits(ctx context.Context, tx *storage.Tx) (l protocol.RunLimits, err error) {
	raw, err := tx.Settings().Get(ctx, limitsSetting)
	if err != nil || raw == "" {
		return l, err
	}
	if err := json.Unmarshal([]byte(raw), &l); err != nil {
		return l, fmt.Errorf("decode the stored limits: %w", err)
	}
	return l, nil
}

// Limits returns the limits that are in force.
func (m *Moderation) Limits(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ protocol.None) (protocol.LimitsView, error) {
	set, err := StoredLimits(ctx, tx)
	return m.view(set), err
}

// SetLimits changes the limits that are given and keeps the others.
func (m *Moderation) SetLimits(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.RunLimits) (protocol.LimitsView, error) {
	set, err := StoredLimits(ctx, tx)
	if err != nil {
		return protocol.LimitsView{}, err
	}
	change(&set.ReadRate, in.ReadRate)
	change(&set.WriteRate, in.WriteRate)
	change(&set.IdentityRate, in.IdentityRate)
	change(&set.ProofLevel, in.ProofLevel)
	raw, err := json.Marshal(set)
	if err != nil {
		return protocol.LimitsView{}, err
	}
	if err := tx.Settings().Put(ctx, limitsSetting, string(raw)); err != nil {
		return protocol.LimitsView{}, err
	}
	return m.view(set), tx.Audit(ctx, actor(c), "limits set", "", string(raw))
}

// ResetLimits restores the limits of the configuration.
func (m *Moderation) ResetLimits(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.LimitsView, error) {
	if err := tx.Settings().Put(ctx, limitsSetting, ""); err != nil {
		return protocol.LimitsView{}, err
	}
	return m.view(protocol.RunLimits{}), tx.Audit(ctx, actor(c), "limits reset", "", "")
}

func (m *Moderation) view(set protocol.RunLimits) protocol.LimitsView {
	v := m.Defaults
	v.Set = set
	over(&v.ReadRate, set.ReadRate)
	over(&v.WriteRate, set.WriteRate)
	over(&v.IdentityRate, set.IdentityRate)
	over(&v.ProofLevel, set.ProofLevel)
	return v
}

func change[T any](p **T, to *T) {
	if to != nil {
		*p = to
	}
}

func over[T any](p *T, set *T) {
	if set != nil {
		*p = *set
	}
}

// Statistics returns the node's figures, at most numbersAge old.
func (m *Moderation) Statistics(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ protocol.None) (protocol.Statistics, error) {
	return m.Numbers.Get(ctx, tx)
}
