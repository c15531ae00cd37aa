package directory

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// What the operator enrols while the owner writes the profile is not lost.
func TestPut_BesideAnEnrolment(t *testing.T) {
	t.Parallel()
	const identity = "eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:17"
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		d := &Directory{Base: "https://n1.example"}
		write := func(fn func(ctx context.Context, tx *storage.Tx) error) error {
			return db.Write(context.Background(), fn)
		}
		require.NoError(t, write(func(ctx context.Context, tx *storage.Tx) error {
			_, err := d.Put(ctx, tx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}})
			return err
		}))
		ended := make(chan error, 1)
		require.NoError(t, write(func(ctx context.Context, tx *storage.Tx) error {
			p := must.Get(tx.Profiles().ByHandle(ctx, "asha"))(t)
			p.ERC8004, p.KeyHash = identity, "thumbprint"
			if _, err := d.Put(ctx, tx, p); err != nil {
				return err
			}
			go func() {
				ended <- write(func(ctx context.Context, tx *storage.Tx) error {
					asha := protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"asha"}}
					_, err := d.PutNeed(ctx, tx, asha, protocol.OwnNeed{Need: protocol.Need{ID: "paper", Description: "Rag paper"}})
					return err
				})
			}()
			time.Sleep(300 * time.Millisecond) // long enough to read what is not committed yet
			return nil
		}))
		require.NoError(t, <-ended)
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Profiles().ByHandle(ctx, "asha")
			require.Len(t, p.Draft.Needs, 1)
			require.Equal(t, identity, p.ERC8004)
			return err
		}))
	})
}
