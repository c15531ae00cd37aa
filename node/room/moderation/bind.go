package moderation

import (
	"context"
	"net/netip"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room; the parameters are the fields of Moderation.
func New(base string, defaults protocol.LimitsView, network func(netip.Addr) string,
	remove func(context.Context, *storage.Tx, protocol.Caller, protocol.PostRef) (protocol.None, error),
	distribute func(context.Context, *storage.Tx, *protocol.StoredPost, storage.LogKind) error,
) *Moderation {
	m := &Moderation{Base: base, Defaults: defaults, Network: network, Delete: remove, Distribute: distribute}
	m.Numbers.Age = numbersAge
	m.Numbers.Count = func(ctx context.Context, tx *storage.Tx, _ *protocol.Statistics) (protocol.Statistics, error) {
		return tx.Site().Statistics(ctx)
	}
	return m
}

// Bind binds the operations of the room.
func (m *Moderation) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ReportPost, m.Report)
	hall.Ahead(t, protocol.ReportPost, m.Ahead)
	hall.Bind(t, protocol.ReadModerationLog, m.PublicLog)
	hall.Bind(t, protocol.ListReviewQueue, m.Queue)
	hall.Bind(t, protocol.HidePost, m.Hide)
	hall.Bind(t, protocol.RestorePost, m.Restore)
	hall.Bind(t, protocol.DismissReports, m.Dismiss)
	hall.Bind(t, protocol.ForwardReport, m.Forward)
	hall.Bind(t, protocol.ReopenReports, m.Reopen)
	hall.Bind(t, protocol.RemovePost, m.Remove)
	hall.Bind(t, protocol.SuspendProfile, m.Suspend)
	hall.Bind(t, protocol.LiftSuspension, m.LiftSuspension)
	hall.Bind(t, protocol.AddNote, m.AddNote)
	hall.Bind(t, protocol.ListNotes, m.Notes)
	hall.Bind(t, protocol.DeleteNote, m.DeleteNote)
	hall.Bind(t, protocol.AddBlock, m.AddBlock)
	hall.Bind(t, protocol.ListBlocks, m.Blocks)
	hall.Bind(t, protocol.LiftBlock, m.LiftBlock)
	hall.Bind(t, protocol.ReadLimits, m.Limits)
	hall.Bind(t, protocol.SetLimits, m.SetLimits)
	hall.Bind(t, protocol.ResetLimits, m.ResetLimits)
	hall.Bind(t, protocol.ReadAudit, m.Audit)
	hall.Bind(t, protocol.ReadStatistics, m.Statistics)
	hall.Bind(t, protocol.ListPeers, m.Peers)
	hall.Bind(t, protocol.SetPeerPolicy, m.SetPolicy)
}
