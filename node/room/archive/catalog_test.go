package archive_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestArchive_Catalog moves a catalog that is larger than a merchant record: all of it, in its
// order, without filling the feed.
func TestArchive_Catalog(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	two := nodetest.NewMover(t, func(c *node.Config) {
		if os.Getenv(storagetest.PostgresEnv) != "" {
			c.Database = storagetest.PostgresURL(t)
		}
	})
	var account string
	writeIn(one, func(ctx context.Context, tx *storage.Tx) error {
		a, err := tx.Accounts().OfProfile(ctx, "home")
		account = a.ID
		return err
	})
	one.PutProfile([]byte(`{"handle":"shop","name":"Shop","kind":"business"}`))
	require.NoError(t, one.Admin().LinkProfile(t.Context(), account, "shop"))
	var file strings.Builder
	for n := range 250 {
		fmt.Fprintf(&file, `{"sku":"s%d","name":"Thing %d","price":{"currency":"INR","amount":"%d.00"},"options":[{"name":"Size","values":["S","L"]}],`+
			`"variants":[{"options":["S"]},{"options":["L"],"price":{"currency":"INR","amount":"%d.50"}}]}`+"\n", n, n, 10+n, 20+n)
	}
	require.NoError(t, one.Call(protocol.ImportItems.Operation, map[string]any{"handle": "shop"}, []byte(file.String()), nil))
	raw := export(one, map[string]any{"handle": "shop"})
	for range 2 { // the second time nothing changes
		require.Equal(t, "shop", must.Get(two.Imports(raw, map[string]any{"replace": true}))(t).Handle)
		items := func(m *nodetest.Mover) (all []protocol.ItemDraft) {
			for after := ""; ; {
				var page protocol.Page[protocol.OwnItem]
				require.NoError(t, m.Call(protocol.ListOwnItems.Operation, map[string]any{"handle": "shop", "limit": 100, "after": after}, nil, &page))
				for _, i := range page.Items {
					all = append(all, i.Item)
				}
				if page.Next == nil {
					return all
				}
				after = *page.Next
			}
		}
		require.Len(t, items(two), 250)
		require.Equal(t, items(one), items(two))
	}
	feed := must.JSON[protocol.Page[protocol.FeedItem]]([]byte(get(two, "/api/public/feed?types=listing")))(t)
	require.Empty(t, feed.Items)
}
