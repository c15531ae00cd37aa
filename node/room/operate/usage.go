package operate

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"stoa/identity/proof"
	"stoa/node/hall"
	"stoa/storage"
)

const (
	usageEvery = 2 * time.Second
	usageAge   = 20 * time.Second // how far back a process reads that has just started
	usageTime  = 5 * time.Second
)

// Usage reports to the other processes of a deployment what the callers of this one
// have used, so that rate limits and the price of proofs apply to all processes
// together. It writes one row in two seconds, and none when there is nothing to
// report. No request waits for it.
type Usage struct {
	db     *storage.DB
	log    *slog.Logger
	limits *hall.Limits
	proofs *proof.Issuer
	self   string

	Sent int64            // number of the last report of this process
	at   time.Time        // when the last report was made
	read map[string]int64 // number of the last report read, by process
}

// A usageDoc is the report in one row.
type usageDoc struct {
	Limits []hall.Use  `json:"limits,omitempty"`
	Proofs proof.Usage `json:"proofs"`
}

// NewUsage shares limits and proofs with the other processes; self names this one.
func NewUsage(self string, db *storage.DB, log *slog.Logger, limits *hall.Limits, proofs *proof.Issuer) *Usage {
	limits.Share()
	proofs.Share()
	return &Usage{db: db, log: log, limits: limits, proofs: proofs, self: self, at: time.Now(), read: map[string]int64{}}
}

// Run sends and reads reports until the context ends. A nil Usage does nothing.
func (u *Usage) Run(ctx context.Context) error {
	if u == nil {
		return nil
	}
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := u.Exchange(ctx); err != nil && ctx.Err() == nil {
				u.log.Warn("exchange usage", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Exchange reports what was used since the last report, and adds the reports of the
// others. A report that cannot be stored is lost: it affects only rates and prices.
func (u *Usage) Exchange(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	doc := usageDoc{Limits: u.limits.Used(max(time.Since(u.at), usageEvery)), Proofs: u.proofs.Used()}
	u.at = time.Now()
	if len(doc.Limits) > 0 || !doc.Proofs.Empty() {
		raw, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		u.Sent++
		if err := u.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Requests().PutUsage(ctx, storage.Usage{Process: u.self, N: u.Sent, Doc: raw})
		}); err != nil {
			return err
		}
	}
	var all []storage.Usage
	if err := u.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		all, err = tx.Requests().UsageOfOthers(ctx, u.self, usageAge)
		return err
	}); err != nil {
		return err
	}
	u.add(all)
	return nil
}

func (u *Usage) add(all []storage.Usage) {
	there := map[string]int64{}
	for _, one := range all {
		there[one.Process] = max(there[one.Process], one.N, u.read[one.Process])
		if one.N <= u.read[one.Process] {
			continue
		}
		var doc usageDoc
		if err := json.Unmarshal(one.Doc, &doc); err != nil { // of another version
			u.log.Warn("read usage", "process", one.Process, "err", err)
			continue
		}
		u.limits.Add(doc.Limits)
		u.proofs.Add(doc.Proofs)
	}
	u.read = there // without the processes that report no longer
}
