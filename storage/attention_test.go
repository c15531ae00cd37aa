package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func person(t *testing.T, db *storage.DB, handle string, unlisted bool) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		draft := protocol.ProfileDraft{Handle: handle, Name: "Name of " + handle, Kind: protocol.Person}
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft, Unlisted: unlisted}))
	})
}

func attentionBoard(t *testing.T, db *storage.DB, handle string, draft protocol.AttentionDraft) *storage.AttentionBoard {
	t.Helper()
	terms, faults := draft.Terms()
	require.Empty(t, faults)
	b := &storage.AttentionBoard{Handle: handle, Open: true, Terms: terms}
	write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.AttentionBoards().Put(ctx, b) })
	return b
}

func boardsListed(t *testing.T, db *storage.DB, category string, size int) (handles []string) {
	t.Helper()
	for after, more := "", true; more; {
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.AttentionBoards().List(ctx, category, size, after)
			for _, b := range page.Items {
				handles = append(handles, b.Handle)
			}
			if more = page.Next != nil; more {
				after = *page.Next
			}
			return err
		})
	}
	return handles
}

// TestAttentionBoard: the profile, its index and the list of boards agree about what is open,
// whatever is changed.
func TestAttentionBoard(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for i := range 5 {
			person(t, db, fmt.Sprint("agent-", i), i == 3)
		}
		capable := func() (handles []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.Profiles().List(ctx, protocol.AgentQuery{Capability: "attention-board"})
				for _, p := range page.Items {
					require.True(t, p.Open().AttentionBoard)
					handles = append(handles, p.Draft.Handle)
				}
				return err
			})
			return handles
		}
		require.Empty(t, capable())
		boards := map[string]*storage.AttentionBoard{}
		for i := range 4 {
			handle := fmt.Sprint("agent-", i)
			boards[handle] = attentionBoard(t, db, handle, protocol.AttentionDraft{Categories: []protocol.BoardCategory{{Name: "Yarn"}, {Name: handle}}})
		}
		require.Equal(t, []string{"agent-2", "agent-1", "agent-0"}, boardsListed(t, db, "", 2), "newest first, without that of an unlisted profile")
		require.Equal(t, []string{"agent-2", "agent-1", "agent-0"}, boardsListed(t, db, " yARN ", 1))
		require.Equal(t, []string{"agent-1"}, boardsListed(t, db, "Agent-1", 20))
		require.ElementsMatch(t, []string{"agent-2", "agent-1", "agent-0"}, capable())

		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			b := must.Get(tx.AttentionBoards().ByHandle(ctx, "agent-1"))(t)
			require.Equal(t, boards["agent-1"].ID, b.ID)
			b.Open = false
			return tx.AttentionBoards().Put(ctx, b)
		})
		person(t, db, "agent-3", false)
		require.Equal(t, []string{"agent-3", "agent-2", "agent-0"}, boardsListed(t, db, "yarn", 20))
		require.ElementsMatch(t, []string{"agent-3", "agent-2", "agent-0"}, capable())
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Unlisted: true,
				Draft: protocol.ProfileDraft{Handle: "agent-2", Name: "New", Kind: protocol.Person}}))
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "agent-0", Name: "New", Kind: protocol.Person}}))
		})
		require.Equal(t, []string{"agent-3", "agent-0"}, boardsListed(t, db, "", 20))
		require.ElementsMatch(t, []string{"agent-3", "agent-0"}, capable(), "a profile that is written again keeps its board")
		require.NoError(t, db.Check(t.Context()))
	})
}

// TestBoardCursor: a cursor is of one listing.
func TestBoardCursor(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for i := range 3 {
			person(t, db, fmt.Sprint("agent-", i), false)
			attentionBoard(t, db, fmt.Sprint("agent-", i), protocol.AttentionDraft{Categories: []protocol.BoardCategory{{Name: "Yarn"}}})
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			page := must.Get(tx.AttentionBoards().List(ctx, "", 1, ""))(t)
			require.Equal(t, protocol.InvalidCursor, protocol.CodeOf(must.Err(tx.AttentionBoards().List(ctx, "yarn", 1, *page.Next))))
			return nil
		})
	})
}

func TestPaymentAccount(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		a := &storage.PaymentAccount{
			Handle: "asha", Provider: protocol.PayRazorpay, Hook: "h1", Sealed: []byte{1}, PaymentAccountDoc: storage.PaymentAccountDoc{KeyID: "k"},
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.PaymentAccounts().Put(ctx, a) })
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, a, must.Get(tx.PaymentAccounts().ByHook(ctx, "razorpay", "h1"))(t))
			require.ErrorIs(t, must.Err(tx.PaymentAccounts().ByHook(ctx, "sandbox", "h1")), storage.ErrNotFound)
			owes, err := tx.PaymentAccounts().Owes(ctx, a.ID)
			require.False(t, owes)
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.PaymentAccounts().DropSecrets(ctx, a.ID))
			got, err := tx.PaymentAccounts().ByID(ctx, a.ID)
			require.Equal(t, []byte{1}, got.Sealed, "in use")
			got.RetiredAt = &tx.Now
			require.NoError(t, tx.PaymentAccounts().Put(ctx, got))
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.PaymentAccounts().DropSecrets(ctx, a.ID))
			all, err := tx.PaymentAccounts().OfProfile(ctx, "asha")
			require.Len(t, all, 1)
			require.Nil(t, all[0].Sealed)
			require.NotNil(t, all[0].RetiredAt)
			return err
		})
	})
}
