package moderation

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

// Who is one reporter, and who are two (contract §4).
func TestReporter(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		ctx := context.Background()
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for _, handle := range []string{"asha", "ravi"} {
				if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}}); err != nil {
					return err
				}
			}
			if err := tx.Accounts().Insert(ctx, storage.Account{ID: "acc_a", Name: "Asha", Role: protocol.RoleOwner}); err != nil {
				return err
			}
			return tx.Accounts().LinkProfile(ctx, "acc_a", "asha")
		}))
		const agent = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:"
		signed := func(key, handle, agent, network string) protocol.Caller {
			return protocol.Caller{Standing: protocol.Signed, KeyID: key, Handle: handle, Agent: agent, Owner: "0xa", Network: network}
		}
		token := protocol.Caller{Standing: protocol.Session, Account: "acc_a", Handle: "asha", Handles: []string{"asha"}, Network: "n1"}
		paid := protocol.Caller{Standing: protocol.Proof, Network: "n1"}
		for _, tt := range []struct {
			name string
			a, b protocol.Caller
			same bool
		}{
			{"a token, and the key of its profile", token, signed("k1", "asha", "", "n2"), true},
			{"two keys of a profile", signed("k1", "asha", "", "n1"), signed("k2", "asha", "", "n2"), true},
			{"two profiles", signed("k1", "asha", "", "n1"), signed("k2", "ravi", "", "n1"), false},
			{"a profile without an account, twice", signed("k1", "ravi", "", "n1"), signed("k2", "ravi", "", "n2"), true},
			{"two keys of a directory", signed("k1", "", "", "n1"), signed("k2", "", "", "n1"), true},
			{"a key of a directory, and a proof of work", signed("k1", "", "", "n1"), paid, true},
			{"keys of directories, from two networks", signed("k1", "", "", "n1"), signed("k1", "", "", "n2"), false},
			{"two identities on the chain", signed("k1", "", agent+"1", "n1"), signed("k1", "", agent+"2", "n1"), false},
			{"an identity on the chain, and its network", signed("k1", "", agent+"1", "n1"), paid, false},
			{"an owner, and the network", token, paid, false},
			{"two networks", paid, protocol.Caller{Standing: protocol.Proof, Network: "n2"}, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
					a := must.Get(reporter(ctx, tx, "post_1", tt.a))(t)
					b := must.Get(reporter(ctx, tx, "post_1", tt.b))(t)
					other := must.Get(reporter(ctx, tx, "post_2", tt.a))(t)
					require.Equal(t, tt.same, a == b)
					require.NotEqual(t, a, other, "reports of two posts cannot be linked")
					return nil
				}))
			})
		}
	})
}

// However many keys a stranger makes, a post stays.
func TestReport_ManyKeys(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		m := &Moderation{Distribute: func(context.Context, *storage.Tx, *protocol.StoredPost, storage.LogKind) error { return nil }}
		id := protocol.NewID(protocol.PostID, time.Now())
		report := func(c protocol.Caller) (state protocol.PostState) {
			require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
				if _, err := m.Report(ctx, tx, c, protocol.NewReport{ID: id}); err != nil {
					return err
				}
				p, err := tx.Posts().ByID(ctx, id)
				if err == nil {
					state = p.State
				}
				return err
			}))
			return state
		}
		require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().Insert(ctx, &protocol.StoredPost{Post: protocol.Post{ID: id, URI: protocol.PostURI("https://n1.example", id), Kind: protocol.Offer,
				Title: "t", Body: "b",
				Author: protocol.Author{Name: "Meera", Method: protocol.ByProof}, CreatedAt: tx.Now}, Board: protocol.BoardID("https://n1.example")})
		}))
		for i := range 2 * protocol.ReportsToHide {
			require.Equal(t, protocol.Visible, report(protocol.Caller{Standing: protocol.Signed, KeyID: fmt.Sprint("key", i), Network: "n1"}))
		}
		for i := range protocol.ReportsToHide - 2 {
			require.Equal(t, protocol.Visible, report(protocol.Caller{Standing: protocol.Proof, Network: fmt.Sprint("other", i)}))
		}
		require.Equal(t, protocol.Hidden, report(protocol.Caller{Standing: protocol.Proof, Network: "last"}))
	})
}

// A flag of another server is shown to the operator, who may dismiss it.
func TestFlagFrom(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		m := &Moderation{}
		id := protocol.NewID(protocol.PostID, time.Now())
		do := func(fn func(ctx context.Context, tx *storage.Tx) error) {
			t.Helper()
			require.NoError(t, db.Write(context.Background(), fn))
		}
		queue := func() (items []protocol.ReviewItem) {
			do(func(ctx context.Context, tx *storage.Tx) error {
				page, err := m.Queue(ctx, tx, protocol.Caller{Standing: protocol.Operator}, protocol.ReviewQuery{})
				items = page.Items
				return err
			})
			return items
		}
		do(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().Insert(ctx, &protocol.StoredPost{Post: protocol.Post{ID: id, URI: protocol.PostURI("https://n1.example", id), Kind: protocol.Offer,
				Title: "t", Body: "b",
				Author: protocol.Author{Name: "Meera", Method: protocol.ByProof}, CreatedAt: tx.Now}, Board: protocol.BoardID("https://n1.example")})
		})
		for n := range 2 * protocol.ReportsToHide {
			do(func(ctx context.Context, tx *storage.Tx) error {
				return m.FlagFrom(ctx, tx, id, fmt.Sprintf("s%d.example", n), "rude")
			})
			do(func(ctx context.Context, tx *storage.Tx) error {
				return m.FlagFrom(ctx, tx, id, fmt.Sprintf("s%d.example", n), "rude")
			})
		}
		items := queue()
		require.Len(t, items, 1)
		require.Equal(t, []any{protocol.Visible, 0, 2 * protocol.ReportsToHide}, []any{items[0].State, items[0].Open, len(items[0].Reports)})
		require.Equal(t, "rude", items[0].Reports[0].Reason)
		require.Regexp(t, `^s\d\.example$`, *items[0].Reports[0].Node)
		do(func(ctx context.Context, tx *storage.Tx) error {
			_, err := m.Dismiss(ctx, tx, protocol.Caller{Standing: protocol.Operator}, protocol.Decision{ID: id})
			return err
		})
		require.Empty(t, queue())
	})
}
