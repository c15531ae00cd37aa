package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// stocksAge is the age at which stocks are measured again.
const stocksAge = 10 * time.Minute

// Health says how a running node is.
type Health struct {
	DB      *storage.DB
	Version string
	Mail    string                        // off, log or smtp
	Chains  func() []protocol.ChainHealth // nil without chains
	Backups string                        // where the node keeps those that it makes; "" for none

	started time.Time
	stocks  storage.Memo[measured]
}

// measured are the stocks as of a time.
type measured struct {
	stocks []protocol.StockUse
	at     time.Time
}

// NewHealth returns the health of a node that starts now.
func NewHealth(db *storage.DB, version, mail string, chains func() []protocol.ChainHealth) *Health {
	h := &Health{DB: db, Version: version, Mail: mail, Chains: chains, started: time.Now().UTC().Truncate(time.Second)}
	h.stocks.Age = stocksAge
	h.stocks.Count = func(ctx context.Context, tx *storage.Tx, _ *measured) (measured, error) {
		all, err := tx.Site().Stocks(ctx)
		m := measured{at: tx.Now}
		for _, s := range all {
			m.stocks = append(m.stocks, protocol.StockUse{Name: string(s.Stock), Rows: s.Rows, MaxRows: s.Cap.Rows, Bytes: s.Bytes, MaxBytes: s.Cap.Bytes})
		}
		return m, err
	}
	return h
}

// Renew measures the stocks again when that is due.
func (h *Health) Renew(ctx context.Context, db *storage.DB) error { return h.stocks.Renew(ctx, db) }

// backupHealth is what an operator has to know of the backups.
func backupHealth(s storage.BackupState, place string) protocol.BackupHealth {
	v := protocol.BackupHealth{Place: place, Name: s.Name, Bytes: s.Bytes, Rows: s.Rows, Encrypted: s.Sealed, Failures: s.Failures, LastError: s.LastError,
		Seconds: s.Took.Seconds(), CheckSeconds: s.CheckTook.Seconds(), Running: s.Owner != ""}
	v.MadeAt, v.CheckedAt, v.NextAt = unlessZero(s.MadeAt), unlessZero(s.CheckedAt), unlessZero(s.NextAt)
	return v
}

func unlessZero(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// BackupDone records that a copy of the database was made.
func BackupDone(ctx context.Context, tx *storage.Tx) error {
	if err := tx.Settings().BackupMade(ctx); err != nil {
		return err
	}
	return tx.Audit(ctx, "operator", "backup", "", "")
}

// Kinds of jobs that send letters, and that ask payment providers.
var (
	mailKinds = []storage.JobKind{storage.MailJob, storage.SignInJob, storage.ConfirmJob, storage.AddressJob, storage.FormerJob, storage.SecurityJob,
		storage.MeetingMailJob, storage.ComplaintMailJob}
	payKinds = []storage.JobKind{storage.BidLinkJob, storage.BidCancelJob, storage.BidPollJob, storage.PayEventJob, storage.RefundJob}
)

// Read says how the node is.
func (h *Health) Read(ctx context.Context, tx *storage.Tx, _ protocol.Caller, _ protocol.None) (protocol.Health, error) {
	v := protocol.Health{At: tx.Now, Version: h.Version, StartedAt: h.started, Engine: h.DB.Engine(), Waiting: h.DB.QueueLen(),
		Jobs: []protocol.JobHealth{}, Peers: []protocol.PeerCount{}, Chains: []protocol.ChainHealth{}, Mail: protocol.MailHealth{State: h.Mail}, Untrusted: true}
	if h.Chains != nil {
		v.Chains = h.Chains()
	}
	var err error
	if v.Bytes, err = tx.Site().Bytes(ctx); err != nil {
		return v, err
	}
	if v.Review, err = tx.Moderation().CountReview(ctx); err != nil {
		return v, err
	}
	if v.Overdue, err = tx.Complaints().Overdue(ctx); err != nil {
		return v, err
	}
	if v.Payments.Accounts, err = tx.Site().PaymentAccounts(ctx); err != nil {
		return v, err
	}
	if v.CheckUp, err = lastCheckUp(ctx, tx); err != nil {
		return v, err
	}
	backup, err := tx.Settings().Backup(ctx)
	if err != nil {
		return v, err
	}
	v.Backup = backupHealth(backup, h.Backups)
	v.BackupAt = v.Backup.MadeAt
	m, err := h.stocks.Get(ctx, tx)
	if err != nil {
		return v, err
	}
	v.Stocks, v.StocksAt = m.stocks, m.at
	outlets, err := tx.Outlets().Stats(ctx)
	if err != nil {
		return v, err
	}
	for _, o := range outlets {
		v.Peers = append(v.Peers, protocol.PeerCount{State: string(o.State), Count: o.Count, Lag: o.Lag})
	}
	conflicts, err := tx.Subscriptions().ListConflicts(ctx)
	if err != nil {
		return v, err
	}
	reports, err := tx.Logs().Reports(ctx)
	if err != nil {
		return v, err
	}
	v.Conflicts, v.Reported = len(conflicts), len(reports)
	return v, readJobs(ctx, tx, &v)
}

// readJobs says where the jobs are.
func readJobs(ctx context.Context, tx *storage.Tx, v *protocol.Health) error {
	jobs, err := tx.Jobs().Health(ctx)
	for _, j := range jobs {
		one := protocol.JobHealth{Kind: string(j.Kind), Due: j.Due, Sleeping: j.Sleeping, Retrying: j.Retrying, Dead: j.Dead, LastError: j.LastError}
		if !j.Oldest.IsZero() {
			one.DueAt = &j.Oldest
		}
		v.Jobs = append(v.Jobs, one)
		switch {
		case slices.Contains(mailKinds, j.Kind):
			v.Mail.Waiting, v.Mail.Retrying, v.Mail.Dead = v.Mail.Waiting+j.Due+j.Sleeping, v.Mail.Retrying+j.Retrying, v.Mail.Dead+j.Dead
			v.Mail.LastError = cmp.Or(j.LastError, v.Mail.LastError)
		case slices.Contains(payKinds, j.Kind):
			v.Payments.Retrying, v.Payments.Dead = v.Payments.Retrying+j.Retrying, v.Payments.Dead+j.Dead
			v.Payments.LastError = cmp.Or(j.LastError, v.Payments.LastError)
		}
	}
	return err
}
