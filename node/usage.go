package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"stoa/identity/proof"
	"stoa/node/dispatch"
	"stoa/storage"
)

const (
	usageEvery = 2 * time.Second
	usageAge   = 20 * time.Second // how far back a process reads that just began
	usageTime  = 5 * time.Second
)

// usage is what the processes of a deployment tell one another of what callers
// used up, so that rates and the price of proofs are those of all of them
// together. It costs one row in two seconds, and none where nobody is busy; no
// request waits for it.
type usage struct {
	db     *storage.DB
	log    *slog.Logger
	limits *dispatch.Limits
	proofs *proof.Issuer
	self   string

	told int64            // how often this process told something
	at   time.Time        // when it last looked what there is to tell
	read map[string]int64 // of each process, the last that was read
}

// A usageDoc is what one row holds.
type usageDoc struct {
	Limits []dispatch.Use `json:"limits,omitempty"`
	Proofs proof.Usage    `json:"proofs"`
}

func newUsage(db *storage.DB, log *slog.Logger, limits *dispatch.Limits, proofs *proof.Issuer) *usage {
	limits.Share()
	proofs.Share()
	return &usage{db: db, log: log, limits: limits, proofs: proofs, self: owner(), at: time.Now(), read: map[string]int64{}}
}

// Run tells and reads until the context ends. A nil usage has nobody to tell.
func (u *usage) Run(ctx context.Context) error {
	if u == nil {
		return nil
	}
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := u.exchange(ctx); err != nil && ctx.Err() == nil {
				u.log.Warn("tell and read usage", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// exchange tells what was used up since the last time, and adds what others told.
// What cannot be stored is lost: it steers rates and prices and nothing else.
func (u *usage) exchange(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	doc := usageDoc{Limits: u.limits.Used(max(time.Since(u.at), usageEvery)), Proofs: u.proofs.Used()}
	u.at = time.Now()
	if len(doc.Limits) > 0 || !doc.Proofs.Empty() {
		raw, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		u.told++
		if err := u.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.TellUsage(ctx, storage.Usage{Process: u.self, N: u.told, Doc: raw})
		}); err != nil {
			return err
		}
	}
	var all []storage.Usage
	if err := u.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		all, err = tx.UsageOfOthers(ctx, u.self, usageAge)
		return err
	}); err != nil {
		return err
	}
	u.add(all)
	return nil
}

func (u *usage) add(all []storage.Usage) {
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
	u.read = there // processes that tell nothing any more are forgotten
}
