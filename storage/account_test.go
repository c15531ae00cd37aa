package storage_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func TestAccounts(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		asha := storage.Account{ID: protocol.NewID(protocol.AccountID, start), Name: "Asha", Role: protocol.RoleOwner, Mail: "asha@example.org", CreatedAt: start}
		ravi := storage.Account{ID: protocol.NewID(protocol.AccountID, start.Add(time.Second)), Name: "Ravi", Role: protocol.RoleOperator, CreatedAt: start}
		token := storage.Token{ID: protocol.NewID(protocol.TokenID, start), Hash: [32]byte{1}, Account: asha.ID, Handle: "shop", Name: "t",
			Scopes: []string{"post"}, CreatedAt: start}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Accounts().Insert(ctx, asha))
			require.NoError(t, tx.Accounts().Insert(ctx, ravi))
			require.ErrorIs(t, tx.Accounts().Insert(ctx, asha), storage.ErrExists)
			require.NoError(t, tx.Accounts().LinkProfile(ctx, asha.ID, "shop"))
			require.NoError(t, tx.Accounts().LinkProfile(ctx, asha.ID, "asha"))
			require.NoError(t, tx.Tokens().Insert(ctx, token))
			require.ErrorIs(t, tx.Accounts().SetMail(ctx, ravi.ID, "asha@example.org"), storage.ErrExists)
			require.NoError(t, tx.Accounts().SetMail(ctx, ravi.ID, "ravi@example.org"))
			require.ErrorIs(t, tx.Accounts().Rename(ctx, "acc_none", "x"), storage.ErrNotFound)
			return tx.Accounts().Rename(ctx, asha.ID, "Asha R")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			got := must.Get(tx.Accounts().ByMail(ctx, "asha@example.org"))(t)
			asha.Name = "Asha R"
			require.Equal(t, asha, got)
			require.Equal(t, []string{"asha", "shop"}, must.Get(tx.Accounts().Handles(ctx, asha.ID))(t))
			page := must.Get(tx.Accounts().List(ctx, "", 1, ""))(t)
			require.Equal(t, ravi.ID, page.Items[0].ID)
			page = must.Get(tx.Accounts().List(ctx, "", 1, *page.Next))(t)
			require.Equal(t, asha.ID, page.Items[0].ID)
			require.Nil(t, page.Next)
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Accounts().LinkProfile(ctx, ravi.ID, "shop")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, "Ravi", must.Get(tx.Accounts().OfProfile(ctx, "shop"))(t).Name)
			require.NotNil(t, must.Get(tx.Tokens().ByID(ctx, token.ID))(t).RevokedAt, "a profile that changes hands takes no token along")
			require.Zero(t, must.Get(tx.Tokens().Count(ctx, asha.ID))(t))
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Accounts().UnlinkProfile(ctx, "shop"))
			return tx.Accounts().SetRole(ctx, ravi.ID, protocol.RoleOwner)
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Accounts().OfProfile(ctx, "shop")), storage.ErrNotFound)
			return nil
		})
	})
}

// TestTicket_Race: of many that spend one ticket at once, one has it.
func TestTicket_Race(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		hash := [32]byte{9}
		late := [32]byte{8}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Tickets().Insert(ctx, storage.Ticket{Hash: late, Purpose: storage.TicketSignIn, Account: "acc", ExpiresAt: tx.Now}))
			return tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketSignIn, Account: "acc", ExpiresAt: tx.Now.Add(time.Hour)})
		})
		var won atomic.Int32
		var group sync.WaitGroup
		for range 24 {
			group.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Tickets().Spend(ctx, hash)) })
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, storage.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		require.EqualValues(t, 1, won.Load())
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Tickets().Spend(ctx, late)) })
		require.ErrorIs(t, err, storage.ErrNotFound, "it has expired")
	})
}

func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		ids := make([]string, 5)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range ids {
				ids[i] = protocol.NewID(protocol.SessionID, start.Add(time.Duration(i)*time.Second))
				expires := tx.Now.Add(time.Hour)
				if i == 4 {
					expires = tx.Now.Add(-time.Second)
				}
				require.NoError(t, tx.Sessions().Insert(ctx, storage.Session{ID: ids[i], Hash: [32]byte{byte(i)}, Account: "acc", Program: "p", ExpiresAt: expires}))
			}
			require.ErrorIs(t, tx.Sessions().End(ctx, "other", ids[0]), storage.ErrNotFound, "not that account's")
			return tx.Sessions().End(ctx, "acc", ids[1])
		})
		list := func() (out []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.Sessions().List(ctx, "acc", 10, "")
				for _, s := range page.Items {
					out = append(out, s.ID)
				}
				return err
			})
			return out
		}
		require.Equal(t, []string{ids[3], ids[2], ids[0]}, list(), "neither the ended nor the one that expired")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.PruneExpired(ctx)
			require.Equal(t, 1, n)
			require.NoError(t, err)
			return tx.Sessions().KeepNewest(ctx, "acc", 2)
		})
		require.Equal(t, []string{ids[3], ids[2]}, list())
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Sessions().Touch(ctx, ids[2]))
			require.Equal(t, 2, must.Get(tx.Sessions().EndAll(ctx, "acc", ""))(t))
			return nil
		})
		require.Empty(t, list())
	})
}

// Who had a profile before is told nothing more of it.
func TestLinkProfile_NoticesEnd(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		link := func(account string) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Accounts().LinkProfile(ctx, account, "asha")
			})
		}
		put := func() {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Profiles().PutNotifySettings(ctx,
					storage.NotifySettings{Handle: "asha", Mail: "old@example.org", Confirmed: true, Webhook: "https://old.example/n"})
			})
		}
		mail := func() (mail string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				s, err := tx.Profiles().NotifySettings(ctx, "asha")
				mail = s.Mail + s.Webhook
				return err
			})
			return mail
		}
		put()
		link("acc_one")
		require.NotEmpty(t, mail(), "set by the agent's key, before it had an account")
		link("acc_one")
		require.NotEmpty(t, mail())
		link("acc_two")
		require.Empty(t, mail())
		put()
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Accounts().UnlinkProfile(ctx, "asha") })
		require.Empty(t, mail())
	})
}
