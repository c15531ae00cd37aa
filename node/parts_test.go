package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestParts_Doors: a post whose text is in the file of its month is read through every door as before, and its author can change it.
func TestParts_Doors(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		parts := filepath.Join(t.TempDir(), "elsewhere")
		there := func(c *node.Config) { c.PartsDir = parts }
		h := nodetest.New(t, change, there)
		token := h.Agent("asha", nodetest.OpenPolicy)
		asha := must.Get(key.GenerateEd25519())(t)
		require.NoError(t, h.Admin().AddKey(t.Context(), "asha", asha, false))
		signed := nodetest.As[protocol.Post](h.Signed(asha, nodetest.GoodPost, nil).Is(201))
		anonymous := h.Post("Shuttles")
		seen := func() (all []string) {
			for _, p := range []protocol.Post{signed, anonymous} {
				for _, way := range [][]string{{"/api/public/board/" + p.ID}, {"/board/" + p.ID, "Accept", nodetest.Accept},
					{"/board/" + p.ID + "/proof"}, {strings.TrimPrefix(p.URI, h.Base), "Accept", "application/activity+json"}} {
					a := h.Ask("GET", way[0], "", way[1:]...)
					all = append(all, way[0]+" "+a.Result().Status+" "+ofPage.ReplaceAllString(a.Body.String(), ""))
				}
			}
			return append(all, h.Ask("GET", "/api/public/board", "").Body.String(), h.Ask("GET", "/api/public/board?q=shuttles", "").Body.String(),
				fmt.Sprint(strings.Count(h.Ask("GET", "/ap/board/log?after=0", "", "Accept", "application/activity+json").Body.String(), "Two looms.")))
		}
		var before []string
		require.Eventually(t, func() bool { // what is committed is numbered and found a moment later
			before = seen()
			n := len(before)
			return before[n-1] != "0" && strings.Contains(before[n-2], "Shuttles") && slices.Equal(before, seen())
		}, time.Minute, 10*time.Millisecond)

		later := h.Config.Storage(quiet) // the same database, for a process two months from now
		later.Now = func() time.Time { return time.Now().AddDate(0, 2, 0) }
		upkeep := func() {
			db := must.Get(storage.Open(t.Context(), later))(t)
			defer func() { require.NoError(t, db.Close()) }()
			next, err := (operate.Upkeep{DB: db, PartsAfter: 1, Owner: "p"}).Parts(t.Context(), storage.Job{})
			require.NoError(t, err)
			require.NoError(t, db.Write(t.Context(), next))
		}
		upkeep()
		restart(h, change, there)
		files := must.Get(filepath.Glob(filepath.Join(parts, "posts-*.db")))(t)
		require.Len(t, files, 1)
		require.Contains(t, string(must.Get(os.ReadFile(files[0]))(t)), "Two looms.")
		require.Eventually(t, func() bool { return slices.Equal(before, seen()) }, time.Minute, 10*time.Millisecond)
		require.NoError(t, h.DB.CheckParts(t.Context()))

		h.Ask("PUT", "/api/public/board/"+signed.ID, `{"kind":"offer","title":"Looms","body":"One loom is left."}`, "Authorization", token).Is(200)
		require.Contains(t, h.Ask("GET", "/api/public/board/"+signed.ID, "").Body.String(), "One loom is left.")
		require.Contains(t, h.Ask("GET", "/api/public/board/"+signed.ID+"/revisions", "").Body.String(), "Two looms.")
		h.Ask("DELETE", "/api/public/board/"+signed.ID, "", "Authorization", token).Is(204)
		upkeep()
		require.NotContains(t, string(must.Get(os.ReadFile(files[0]))(t)), "Two looms.")
		require.Contains(t, string(must.Get(os.ReadFile(files[0]))(t)), "Body of it")
	})
}

// ofPage is what a page says of the moment in which it was made.
var ofPage = regexp.MustCompile(`nonce-[^']+|nonce="[^"]+"`)
