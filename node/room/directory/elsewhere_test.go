package directory

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

// TestMerchants_Elsewhere: shops of other nodes come after those of this one, each once, whatever the size of a page; one
// whose node does not answer is marked.
func TestMerchants_Elsewhere(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		d := New("https://n1.example", nil)
		const here, away = 3, 4
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for n := range here {
				if _, err := d.Put(ctx, tx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: fmt.Sprint("here", n), Name: "Cloth",
					Kind: protocol.Business}, CreatedAt: tx.Now}); err != nil {
					return err
				}
			}
			for n := range away {
				if _, err := tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: fmt.Sprintf("https://n2.example/ap/agents/away%d", n), Host: "n2.example",
					Summary: protocol.AgentSummary{Profile: protocol.ProfileDraft{Handle: fmt.Sprint("away", n), Name: "Cloth", Kind: protocol.Business}}}); err != nil {
					return err
				}
			}
			return tx.Subscriptions().Put(ctx, storage.Subscription{Board: "https://n2.example/ap/board", Host: "n2.example",
				State: storage.SubscriptionAccepted, OKAt: tx.Now})
		}))
		walk := func(q protocol.MerchantQuery) (all []protocol.MerchantEntry) {
			for {
				var page protocol.List[protocol.MerchantEntry]
				require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
					page, err = d.Merchants(ctx, tx, protocol.Caller{}, q)
					return err
				}))
				require.LessOrEqual(t, len(page.Items), q.Limit)
				all = append(all, page.Items...)
				if page.Next == nil {
					return all
				}
				q.After = *page.Next
			}
		}
		for limit := 1; limit <= here+away+1; limit++ {
			seen := map[string]bool{}
			all := walk(protocol.MerchantQuery{Q: "clo", Paging: protocol.Paging{Limit: limit}})
			for n, e := range all {
				require.False(t, seen[e.Handle], e.Handle)
				seen[e.Handle] = true
				require.Equal(t, n >= here, e.Node != nil, "those of this node are first")
			}
			require.Len(t, all, here+away, "%d a page", limit)
		}
		q := protocol.MerchantQuery{Local: true, Paging: protocol.Paging{Limit: 10}}
		require.Len(t, walk(q), here)
		q.Local = false
		now = now.Add(6 * 24 * time.Hour)
		require.Nil(t, walk(q)[here].GoneSince)
		now = now.Add(2 * 24 * time.Hour)
		require.Equal(t, now.Add(-8*24*time.Hour), *walk(q)[here].GoneSince)
		require.Equal(t, "https://n2.example/api/public/agents/away3", walk(q)[here].Profile)
	})
}

// TestTell_Identity: when the chain identity of a listed agent ends, other nodes are told, although nothing else changed.
func TestTell_Identity(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		d := New("https://n1.example", nil)
		p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "ada", Name: "Ada", Kind: protocol.Person}, CreatedAt: now,
			ERC8004: "eip155:1:0x00000000000000000000000000000000000000aa:1"}
		told := func() (activity string) {
			t.Helper()
			now = now.Add(time.Hour)
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().PutAt(ctx, p, p.UpdatedAt)
				return err
			}))
			run := must.Get(d.Jobs()[storage.AgentToldJob](t.Context(), storage.Job{Args: []byte("ada")}))(t)
			require.NoError(t, db.Write(t.Context(), run))
			require.NoError(t, db.Numbered(t.Context()))
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				raw, err := tx.Profiles().Told(ctx, protocol.BoardID(d.Base), "ada")
				activity = string(raw)
				return err
			}))
			return activity
		}
		first := told()
		require.Contains(t, first, p.ERC8004)
		require.Equal(t, first, told(), "nothing changed")
		p.ERC8004 = ""
		require.NotContains(t, told(), "eip155")
	})
}
