package credential

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/registration"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const unreadChain = "eip155:5:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:"

// TestDocuments_Bounded: one run reads a bounded number of identities, however many are due, and the next begins a minute later. What is left
// of identities without a profile is deleted beside them.
func TestDocuments_Bounded(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		const all = 2*documentsAtOnce + 10
		chain := must.Get(NewChain([]string{"1337=http://127.0.0.1:1,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}, false, db, slog.New(slog.DiscardHandler)))(t)
		write := func(f func(context.Context, *storage.Tx) error) {
			t.Helper()
			require.NoError(t, db.Write(t.Context(), f))
		}
		for i := range all {
			write(func(ctx context.Context, tx *storage.Tx) error {
				handle := fmt.Sprint("agent", i)
				draft := protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}
				if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft}); err != nil {
					return err
				}
				e := storage.Enrolment{Handle: handle, ERC8004: unreadChain + fmt.Sprint(i), KeyID: handle, Owner: "0xa", Block: 1}
				return tx.Enrolments().Begin(ctx, "operator", e, []byte("{}"))
			})
		}
		left := func() (n int) {
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				due, err := tx.AgentDocuments().Due(ctx, 2*all)
				n = len(due)
				return err
			}))
			return n
		}
		d := &Documents{DB: db, Chain: chain, Host: "n1.example", Log: slog.New(slog.DiscardHandler)}
		run := func() {
			t.Helper()
			after := must.Get(d.Job(t.Context(), storage.Job{}))(t)
			write(after)
		}
		require.Equal(t, all, left())
		run()
		require.Equal(t, all-documentsAtOnce, left())
		jobs, _, err := db.ClaimJobs(t.Context(), "test", 1000, documentsEvery)
		require.NoError(t, err)
		for _, j := range jobs {
			require.NotEqual(t, storage.DocumentsJob, j.Kind, "the next run is not due yet")
		}
		for i := range all - 10 {
			write(func(ctx context.Context, tx *storage.Tx) error {
				return tx.Profiles().Delete(ctx, fmt.Sprint("agent", all-1-i))
			})
		}
		run()
		require.Zero(t, left(), "of those whose profiles are deleted nothing is left")
	})
}

// TestDocuments_Candidates: who is asked whether it vouches for an identity.
func TestDocuments_Candidates(t *testing.T) {
	t.Parallel()
	r := &documentRunner{Documents: &Documents{Host: "n1.example"}}
	for _, c := range []struct {
		uri, site string
		hosts     []string
		want      []string
	}{
		{"https://A.example/x.json", "https://shop.example/", []string{"web.example"}, []string{"a.example", "shop.example", "web.example"}},
		{"data:application/json,{}", "", []string{"web.example"}, []string{"web.example"}},
		{"https://n1.example/.well-known/x", "https://a.example", []string{"a.example", "b.example", "c.example", "d.example"},
			[]string{"a.example", "b.example", "c.example"}},
		{"ipfs://x/y", "javascript:alert(1)", nil, nil},
	} {
		require.Equal(t, c.want, r.candidates(c.uri, c.site, registration.Document{Hosts: c.hosts}), c.uri)
	}
}
