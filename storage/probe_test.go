package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// What a profile lists is what is asked: parts replace only themselves, what is
// the same address is one probe, what is no address is none.
func TestPutProbes(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		ctx := context.Background()
		write := func(fn func(ctx context.Context, tx *storage.Tx) error) { require.NoError(t, db.Write(ctx, fn)) }
		draft := func(handle string, endpoints ...string) *storage.StoredProfile {
			p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Business}}
			for i, e := range endpoints {
				p.Draft.Capabilities = append(p.Draft.Capabilities, protocol.Capability{ID: fmt.Sprint("c", i), Name: "C", Description: "d", Endpoint: e})
			}
			return p
		}
		put := func(p *storage.StoredProfile) {
			write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().Put(ctx, p)) })
		}
		targets := func(handle string) (list []string) {
			require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				probes, err := tx.Probes().OfProfile(ctx, handle)
				for _, p := range probes {
					list = append(list, p.Target+" of "+p.Domain)
				}
				return err
			}))
			return list
		}
		chain := draft("asha", "https://A.Example/x#part", "https://a.example/x", "", "https://sub.user.github.io/", "ftp://a.example/",
			"https://10.0.0.1/", "https://u@a.example/", "https://")
		chain.ERC8004, chain.KeyHash = "eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:7", "key"
		put(chain)
		write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Probes().Put(ctx, "asha", storage.FromMerchant, []string{"https://shop.asha.co.in/", "https://a.example/x"})
		})
		require.Equal(t, []string{
			"eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:7 key of eip155:1337",
			"https://10.0.0.1/ of 10.0.0.1", "https://a.example/x of a.example",
			"https://shop.asha.co.in/ of asha.co.in", "https://sub.user.github.io/ of user.github.io",
		}, targets("asha"))

		put(draft("asha", "https://b.example/"))
		require.Equal(t, []string{"https://a.example/x of a.example", "https://b.example/ of b.example", "https://shop.asha.co.in/ of asha.co.in"}, targets("asha"))
		put(draft("ravi", "https://b.example/"))
		write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
		require.Empty(t, targets("asha"))
		require.Equal(t, []string{"https://b.example/ of b.example"}, targets("ravi"))
	})
}

// The liveness of a profile follows from its probes, also when it drops one.
func TestJudge(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		ctx := context.Background()
		at := time.Now().UTC().Truncate(time.Millisecond)
		set := func(endpoints ...string) {
			p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "A", Kind: protocol.Person}}
			for i, e := range endpoints {
				p.Draft.Capabilities = append(p.Draft.Capabilities, protocol.Capability{ID: fmt.Sprint("c", i), Name: "C", Description: "d", Endpoint: e})
			}
			require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().Put(ctx, p)) }))
		}
		settle := func(target string, alive protocol.Liveness) {
			require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				p := storage.Probe{Target: target, Alive: alive, Outcome: "test"}
				if alive == protocol.LivenessAlive {
					p.AnsweredAt = at
				}
				if err := tx.Probes().Settle(ctx, p, at.Add(time.Hour)); err != nil {
					return err
				}
				handles, err := tx.Probes().Handles(ctx, target, "", 10)
				require.Equal(t, []string{"asha"}, handles)
				if err != nil {
					return err
				}
				return tx.Probes().JudgeAgents(ctx, append(handles, "nobody"))
			}))
		}
		is := func(alive protocol.Liveness, seen time.Time) {
			t.Helper()
			require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Profiles().ByHandle(ctx, "asha")
				require.Equal(t, alive, p.Alive)
				require.Equal(t, seen, p.LastSeenAt)
				return err
			}))
		}
		set("https://one.example/", "https://two.example/")
		is(protocol.LivenessUnknown, time.Time{})
		settle("https://one.example/", protocol.LivenessDead)
		is(protocol.LivenessUnknown, time.Time{})
		settle("https://two.example/", protocol.LivenessDead)
		is(protocol.LivenessDead, time.Time{})
		settle("https://two.example/", protocol.LivenessAlive)
		is(protocol.LivenessAlive, at)
		set("https://one.example/")
		is(protocol.LivenessDead, at)
		set()
		is(protocol.LivenessUnknown, at)
	})
}

// An address that was asked counts for its domain though nobody lists it any
// more: taking it out and in again buys no further requests.
func TestClaimProbes_Dropped(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	db := storagetest.OpenConfig(t, storage.Config{Now: func() time.Time { return now }})
	ctx := context.Background()
	list := func(targets ...string) {
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "A", Kind: protocol.Person}}); err != nil {
				return err
			}
			return tx.Probes().Put(ctx, "asha", storage.FromMerchant, targets)
		}))
		now = now.Add(90 * time.Second)
	}
	claim := func() (targets []string) {
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			probes, err := tx.Probes().Claim(ctx, storage.ProbeClaim{Most: 10, PerDomain: 2, Lease: time.Minute})
			for _, p := range probes {
				targets = append(targets, p.Target)
			}
			return err
		}))
		return targets
	}
	list("https://a.big.example/")
	require.Equal(t, []string{"https://a.big.example/"}, claim())
	list()
	require.Empty(t, claim())
	list("https://b.big.example/")
	require.Equal(t, []string{"https://b.big.example/"}, claim())
	list("https://c.big.example/")
	require.Empty(t, claim(), "two of the domain within the hour")
	now = now.Add(3 * time.Hour)
	require.Equal(t, []string{"https://c.big.example/"}, claim())
	now = now.Add(3 * time.Hour)
	claim()
	require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		next, err := tx.Probes().Next(ctx)
		require.Equal(t, now.Add(time.Minute), next, "the dropped ones are forgotten")
		return err
	}))
}

// Thousands of addresses of one host wait for the turn that they have at sixty an
// hour, so that looking at them keeps nobody else waiting.
func TestClaimProbes_Crowd(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		const crowd = 960
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range crowd / 30 {
				handle := fmt.Sprint("agent-", i)
				if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "A", Kind: protocol.Person}}); err != nil {
					return err
				}
				var targets []string
				for j := range 30 {
					targets = append(targets, fmt.Sprintf("https://crowd.example/%d/%d", i, j))
				}
				if err := tx.Probes().Put(ctx, handle, storage.FromMerchant, targets); err != nil {
					return err
				}
			}
			return nil
		})
		advance(2 * time.Minute)
		// claim takes what is due until nothing is, and counts the rounds.
		claim := func(most int) (rounds int) {
			for ; ; rounds++ {
				var next time.Time
				write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					if next, err = tx.Probes().Next(ctx); err == nil && !next.After(tx.Now) {
						_, err = tx.Probes().Claim(ctx, storage.ProbeClaim{Most: most, PerDomain: 60, Lease: 24 * time.Hour})
						next = time.Time{}
					}
					return err
				})
				if !next.IsZero() {
					return rounds
				}
			}
		}
		require.GreaterOrEqual(t, claim(30), crowd/240)
		advance(50 * time.Minute)
		require.Less(t, claim(1), crowd/8/3, "a turn is some moment of sixteen hours; without turns all are due again, eight a round")
	})
}
