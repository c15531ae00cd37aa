package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func TestARDSources(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const a, b = "https://a.example/ai-catalog.json", "https://b.example/ard"
		entry := func(publisher, name, more string) storage.ARDEntryDoc {
			var e protocol.ClaimedEntry
			require.NoError(t, json.Unmarshal([]byte(fmt.Sprintf(`{"identifier":"urn:air:%s:%s","displayName":"Weather %s",
				"type":"application/mcp-server-card+json","url":"https://%s/card"%s}`, publisher, name, name, publisher, more)), &e))
			return must.Get(storage.NewARDEntryDoc(e))(t)
		}
		put := func(source string, e storage.ARDEntryDoc) bool {
			return writes(t, db, func(ctx context.Context, tx *storage.Tx) (bool, error) {
				return tx.ARDSources().PutEntry(ctx, source, &e)
			})
		}
		find := func(text string, terms ...protocol.ARDTerm) (names []string) {
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.ARDSources().Search(ctx, text, terms, 2, "")
				for _, e := range page.Items {
					names = append(names, e.Identifier+" of "+e.Via)
				}
				if err == nil && page.Next != nil {
					names = append(names, "more")
				}
				return err
			}))
			return names
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, s := range []storage.ARDSource{{URL: a, Host: "a.example"}, {URL: b, Host: "b.example", Registry: true}} {
				require.NoError(t, tx.ARDSources().Add(ctx, s))
			}
			return nil
		})
		require.True(t, put(a, entry("x.example", "one", `,"tags":["rain"]`)))
		require.True(t, put(b, entry("x.example", "one", `,"tags":["rain"],"description":"another text"`)), "an identifier is unique within a directory")
		require.True(t, put(b, entry("y.example", "two", `,"metadata":{"languages":"hi,en"}`)))
		require.True(t, put(b, entry("sub.y.example", "three", "")))
		require.Equal(t, []string{"urn:air:sub.y.example:three of " + b, "urn:air:y.example:two of " + b, "more"}, find("weather"))
		require.Equal(t, []string{"urn:air:x.example:one of " + a}, find("weather rain"), "once, in the directory that had it first")
		require.Empty(t, find("another text"))
		for _, c := range []struct {
			path, value string
			want        int
		}{{protocol.ARDType, "application/mcp-server-card", 1}, {protocol.ARDType, "application/a2a-agent-card+json", 0},
			{protocol.ARDPublisherOf, "Y.example", 1}, {protocol.ARDPublisherOf, "z.example", 0}, {protocol.ARDLanguages, "hi", 1},
			{protocol.ARDLanguages, "ta", 0}, {protocol.ARDHasIdentity, "false", 0}} {
			require.Len(t, find("weather two", protocol.ARDTerm{Path: c.path, Values: []string{c.value}}), c.want, c.path+" "+c.value)
		}
		require.True(t, put(b, entry("y.example", "two", `,"tags":["hail"]`)), "what is known is replaced")
		require.Empty(t, find("weather two", protocol.ARDTerm{Path: protocol.ARDLanguages, Values: []string{"hi"}}))
		require.Len(t, find("hail"), 1)

		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Subscriptions().Put(ctx, storage.Subscription{Board: "https://x.example/ap/board", Host: "x.example"})
		})
		require.Empty(t, find("rain"), "a followed node tells of its agents itself")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.RemoteAgents().DropUnder(ctx, "y.example") })
		require.Empty(t, find("weather two"))
		require.Empty(t, find("weather three"))

		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			s := must.Get(tx.ARDSources().ByURL(ctx, b))(t)
			s.OKAt = tx.Now.Add(-29 * 24 * time.Hour)
			require.NoError(t, tx.ARDSources().Put(ctx, s))
			gone, err := tx.ARDSources().Prune(ctx)
			require.Equal(t, 0, gone)
			require.NoError(t, err)
			s.OKAt = tx.Now.Add(-31 * 24 * time.Hour)
			require.NoError(t, tx.ARDSources().Put(ctx, s))
			gone, err = tx.ARDSources().Prune(ctx)
			require.Equal(t, 1, gone)
			require.NoError(t, err)
			for source, want := range map[string]int{a: 1, b: 0} {
				n, err := tx.ARDSources().Count(ctx, source)
				require.Equal(t, want, n, source)
				require.NoError(t, err)
			}
			ok, err := tx.ARDSources().Delete(ctx, a)
			require.True(t, ok)
			return err
		})
		require.Empty(t, find("weather"))
	})
}

// A directory has room for so many entries, a node for so many directories.
func TestARDSources_Bound(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range protocol.MaxARDDirectories {
				require.NoError(t, tx.ARDSources().Add(ctx, storage.ARDSource{URL: fmt.Sprintf("https://d%d.example/x.json", i)}))
			}
			require.Equal(t, protocol.Conflict, protocol.CodeOf(tx.ARDSources().Add(ctx, storage.ARDSource{URL: "https://d.example/x.json"})))
			return nil
		})
		require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO ard_entry (source, identifier, publisher, digest, doc)
			WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT))
			SELECT 'https://d1.example/x.json', 'urn:air:x.example:s' || n, '', '', '{}' FROM series`, protocol.MaxARDEntries))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for name, want := range map[string]bool{"urn:air:x.example:s7": true, "urn:air:x.example:new": false} {
				doc := must.Get(storage.NewARDEntryDoc(protocol.ClaimedEntry{ARDEntry: protocol.ARDEntry{Identifier: name}}))(t)
				require.Equal(t, want, must.Get(tx.ARDSources().PutEntry(ctx, "https://d1.example/x.json", &doc))(t), name)
			}
			return nil
		})
	})
}
