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
)

// A site map shows the visible posts of this node, each with the time of its
// last visible reply, in parts by the number of their making.
func TestListedPosts(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		ctx := context.Background()
		start := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
		var ids []string
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for n := range int64(300) {
				p := samplePost(start.Add(time.Duration(n)*time.Second), n)
				switch n {
				case 3: // of another node
					p.Node = ptr("n2.example")
					p.URI = "https://n2.example/ap/posts/" + p.ID
				case 10:
					p.InReplyTo, p.ReplyTo = &ids[9], base+"/ap/posts/"+ids[9]
				}
				if err := tx.Posts().Insert(ctx, p); err != nil {
					return err
				}
				activity := []byte(nil)
				if p.Node != nil {
					activity = []byte(`{"relayed":true}`)
				}
				if err := tx.Logs().Append(ctx, p.Board, "create", p.ID, activity); err != nil {
					return err
				}
				ids = append(ids, p.ID)
			}
			err := tx.Logs().Append(ctx, boardID, "update", ids[0], nil)
			return err
		}))
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Posts().SetState(ctx, ids[5], protocol.Hidden, "test"); err != nil {
				return err
			}
			return tx.Posts().SetState(ctx, ids[6], protocol.Deleted, "")
		}))
		require.NoError(t, db.Numbered(ctx))
		read := func(after, upTo int64) (names []string, changed []time.Time) {
			require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				profiles, posts, err := tx.Site().Size(ctx, boardID)
				require.Zero(t, profiles)
				require.EqualValues(t, 301, posts)
				if err != nil {
					return err
				}
				found, err := tx.Site().Posts(ctx, boardID, after, upTo)
				for _, l := range found {
					names, changed = append(names, l.Name), append(changed, l.Changed)
				}
				return err
			}))
			return names, changed
		}
		names, changed := read(0, 11)
		require.Equal(t, []string{ids[0], ids[1], ids[2], ids[4], ids[7], ids[8], ids[9], ids[10]}, names)
		require.Equal(t, start.Add(8*time.Second), changed[5])
		require.Equal(t, start.Add(10*time.Second), changed[6], "its reply")
		rest, _ := read(11, 301)
		require.Equal(t, ids[11:], rest)
		none, _ := read(301, 5000)
		require.Empty(t, none)

		require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			_, posts, err := tx.Site().Size(ctx, "https://nobody.example/ap/board")
			require.Zero(t, posts)
			return err
		}))
	})
}

func TestListedProfiles(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		ctx := context.Background()
		put := func(handle string) {
			require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Unlisted: handle == "hidden",
					Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}}))
			}))
		}
		for n := range 5 {
			put(fmt.Sprintf("agent-%d", n))
		}
		put("hidden")
		put("agent-1") // written again: the number stays
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "agent-2") }))
		require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			size, _, err := tx.Site().Size(ctx, boardID)
			require.NoError(t, err)
			first := must.Get(tx.Site().Profiles(ctx, 0, 3))(t)
			rest := must.Get(tx.Site().Profiles(ctx, 3, size))(t)
			var names []string
			for _, l := range append(first, rest...) {
				names = append(names, l.Name)
				require.WithinDuration(t, tx.Now, l.Changed, time.Minute)
			}
			require.Equal(t, []string{"agent-0", "agent-1", "agent-3", "agent-4"}, names)
			whole := must.Get(tx.Site().NumberedProfiles(ctx, 1, 4))(t)
			require.Len(t, whole, 2)
			require.Equal(t, "agent-1", whole[0].Draft.Handle)
			return nil
		}))
	})
}
