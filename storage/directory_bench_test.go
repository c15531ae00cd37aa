package storage_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// TestDirectorySpeed measures every kind of search on a filled directory; it is
// skipped unless STOA_DIRECTORY says how many profiles to fill in, such as
// 100000. The limit is that of the listing rules: p95 under 50 ms.
func TestDirectorySpeed(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("STOA_DIRECTORY"))
	if n == 0 {
		t.Skip("set STOA_DIRECTORY=100000 to measure")
	}
	storagetest.EachInTurn(t, func(t *testing.T, db *storage.DB) {
		begun := time.Now()
		require.NoError(t, storagetest.FillDirectory(db, n))
		t.Logf("filled %d profiles in %v", n, time.Since(begun).Round(time.Millisecond))
		for _, c := range directoryCases {
			var took []time.Duration
			count := 0
			for range 40 {
				begun := time.Now()
				read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					count, err = c.list(ctx, tx)
					return err
				})
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			p95 := took[len(took)*95/100]
			flag := ""
			if p95 > 50*time.Millisecond {
				flag = "  SLOW"
				t.Errorf("%s: p95 %v", c.name, p95)
			}
			if flag == "" && !testing.Verbose() {
				continue
			}
			t.Logf("%-44s %3d items  median %8v  p95 %8v%s", c.name, count, took[len(took)/2].Round(10*time.Microsecond), p95.Round(10*time.Microsecond), flag)
		}
	})
}

type directoryCase struct {
	name string
	list func(ctx context.Context, tx *storage.Tx) (int, error)
}

var directoryCases = func() (cases []directoryCase) {
	agents := func(q protocol.AgentQuery) {
		cases = append(cases, directoryCase{fmt.Sprintf("agents %q kind=%s cap=%s tag=%s region=%s id=%v", q.Q, q.Kind, q.Capability, q.Tag, q.Region, q.HasIdentity != nil && *q.HasIdentity),
			func(ctx context.Context, tx *storage.Tx) (int, error) {
				p, err := tx.ListProfiles(ctx, q)
				return len(p.Items), err
			}})
	}
	merchants := func(q protocol.MerchantQuery) {
		cases = append(cases, directoryCase{fmt.Sprintf("merchants %q category=%s city=%s open=%v", q.Q, q.Category, q.City, q.OpenNow), func(ctx context.Context, tx *storage.Tx) (int, error) {
			p, err := tx.ListMerchants(ctx, q)
			return len(p.Items), err
		}})
	}
	agents(protocol.AgentQuery{})
	for _, q := range []protocol.AgentQuery{{Kind: protocol.Person}, {Kind: protocol.Business}, {Capability: "schedule-meeting"}, {Capability: "orders"}, {Tag: "paper"}, {Tag: "rare"}, {Tag: "none"},
		{Region: "IN"}, {Region: "IN-KA"}, {HasIdentity: new(true)}, {HasIdentity: new(false)}, {Kind: protocol.Business, Capability: "schedule-meeting"},
		{Kind: protocol.Person, Region: "IN-KA", Tag: "paper", HasIdentity: new(true)}, {Kind: protocol.Business, Tag: "rare", HasIdentity: new(true)}} {
		agents(q)
	}
	for _, q := range []string{"the", "w1", "w1 the", "w1 w2 w3", "w5000", "nowhere", "made", "asha", "paper", "asha paper", "asha the w1", "hand made paper", `"hand made"`, `"w1 the"`, `"hand made paper"`, `"made paper in mumbai"`,
		`"w2 w1 w1"`, "-paper", "-the", "made -paper", "the -w1", "w1 -the -made", `-"hand made"`, `made -"made paper"`, "tag:paper", "-tag:paper", "kind:business the", "made -kind:person -the", "tag:rare w1", "asha menon", `"asha menon" the`, "w1 nowhere", "schedule orders"} {
		agents(protocol.AgentQuery{Q: q})
		agents(protocol.AgentQuery{Q: q, Kind: protocol.Business, Region: "IN"})
	}
	for _, q := range []string{"", "the", "paper", "mumbai", `"hand made"`, "-the"} {
		for _, open := range []bool{false, true} {
			merchants(protocol.MerchantQuery{Q: q, OpenNow: open})
			merchants(protocol.MerchantQuery{Q: q, City: "Bombay", OpenNow: open})
			merchants(protocol.MerchantQuery{Q: q, Category: "paper", City: "Bombay", OpenNow: open})
		}
	}
	cases = append(cases, directoryCase{"people", func(ctx context.Context, tx *storage.Tx) (int, error) {
		p, err := tx.ListPeople(ctx, protocol.PeopleQuery{Q: "asha"})
		return len(p.Items), err
	}})
	return cases
}()
