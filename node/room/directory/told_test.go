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

// The followers of an agent, listed or not, are told of its profile when what they are shown of it has changed, once in five
// minutes, and then of the last change.
func TestTellFollowers(t *testing.T) {
	t.Parallel()
	for name, unlisted := range map[string]bool{"listed": false, "unlisted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
				now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
				c.Now = func() time.Time { return now }
				db := storagetest.OpenConfig(t, c)
				d := New("https://n1.example", nil)
				actor := protocol.ActorID(d.Base, "asha")
				write := func(fn func(ctx context.Context, tx *storage.Tx) error) {
					require.NoError(t, db.Write(t.Context(), fn))
					require.NoError(t, db.Numbered(t.Context()))
				}
				put := func(headline, language string) {
					write(func(ctx context.Context, tx *storage.Tx) error {
						_, err := d.Put(ctx, tx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person,
							Headline: headline, Languages: []string{language}}, Unlisted: unlisted})
						return err
					})
				}
				// told runs what is due after a pause and returns the entries of the agent's log, true for those that are told.
				told := func(pause time.Duration) (live []bool) {
					now = now.Add(pause)
					write(func(ctx context.Context, tx *storage.Tx) error {
						jobs := must.Get(tx.Jobs().List(ctx, storage.JobWaiting, "", 100, ""))(t)
						for _, j := range jobs.Items {
							if j.Kind != storage.AgentToldJob || j.RunAt.After(now) {
								continue
							}
							require.NoError(t, tx.Jobs().Finish(ctx, j.ID))
							require.NoError(t, must.Get(d.tellAgent(ctx, j))(t)(ctx, tx))
						}
						return nil
					})
					require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
						entries, err := tx.Logs().After(ctx, actor, 0, 100)
						for _, e := range entries {
							require.Equal(t, []string{string(storage.LogUpdate), "agent/asha"}, []string{string(e.Kind), e.ObjectID})
							live = append(live, !e.Redacted)
						}
						return err
					}))
					return live
				}
				put("Paper", "en")
				require.Empty(t, told(time.Minute), "nobody follows")
				write(func(ctx context.Context, tx *storage.Tx) error {
					if _, err := tx.Logs().OpenAgent(ctx, actor); err != nil {
						return err
					}
					return tx.Followers().Put(ctx, storage.Follower{LocalActor: actor, Actor: "https://peer.example/users/carol",
						Inbox: "https://peer.example/users/carol/inbox", Host: "peer.example", CreatedAt: tx.Now})
				})
				now = now.Add(time.Hour)
				put("Hand-made paper", "en")
				require.Equal(t, []bool{true}, told(2*time.Second))
				put("Cloth", "en")
				put("Cloth and paper", "en")
				require.Equal(t, []bool{true}, told(4*time.Minute), "not yet")
				require.Equal(t, []bool{false, true}, told(2*time.Minute), "in place of the one before")
				now = now.Add(time.Hour)
				put("Cloth and paper", "hi")
				require.Equal(t, []bool{false, true}, told(time.Hour), "followers are shown no languages")
			})
		})
	}
}
