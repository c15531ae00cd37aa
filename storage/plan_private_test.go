package storage_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"

	"github.com/stretchr/testify/require"
)

// A list reads no table from end to end, but for the pages that it merges; and
// nothing that is not of its page: it sorts nothing, and no condition drops what
// an index finds, but what has expired and is not pruned yet. Where PostgreSQL
// knows of a handful of rows it may do as it likes. SQLite names no conditions.
var (
	endToEnd = regexp.MustCompile(`Seq Scan on|\bSCAN [a-z_]+$`)
	pages    = regexp.MustCompile(`SCAN (r|m|waiting)$`)
	sorted   = regexp.MustCompile(`\bSort\b|TEMP B-TREE`)
	dropped  = regexp.MustCompile(`Filter:`)
	handful  = regexp.MustCompile(`rows=\d{1,2} `)
	runOut   = regexp.MustCompile(`Filter: .*expires_at|Filter: \(one = 1\)`)
)

// astray is the step of a plan that reads what is not of the page, "" without.
// There are few rows of one thread or post, which may be sorted and looked at.
func astray(asking, query string, plan []string) string {
	few, merges, small := strings.HasPrefix(asking, "of a "), strings.Contains(query, " UNION "), false
	for _, step := range plan {
		if strings.Contains(step, "rows=") { // what follows says more of this step
			small = handful.MatchString(step)
		}
		if endToEnd.MatchString(step) && !pages.MatchString(step) ||
			sorted.MatchString(step) && !merges && !few && !small ||
			dropped.MatchString(step) && !runOut.MatchString(step) && !few && !small {
			return step
		}
	}
	return ""
}

// TestPlans_Private runs the lists of owners and operators on a node with one
// busy owner among many, first pages and later ones, and looks at the plan of each
// query as the engine makes it: nothing is read but the page.
func TestPlans_Private(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		db, err := storage.Open(t.Context(), c)
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, fill.Fill(t.Context(), db, fill.Config{Base: base, Posts: 6000, Profiles: 500, Threads: 6000, Seed: 1}))
		fillAccounts(t, db)
		if c.URL != "" {
			own, err := sql.Open("pgx", c.URL)
			require.NoError(t, err)
			// An empty table is read end to end whatever its indexes: some agents moved here.
			_, err = own.Exec(`INSERT INTO archive_post (handle, seq) SELECT 'moved-' || seq % 300, seq FROM post`)
			require.NoError(t, err)
			_, err = own.Exec(`VACUUM (ANALYZE)`)
			require.NoError(t, err)
			require.NoError(t, own.Close())
		}
		seen, asking := map[string]bool{}, ""
		storage.ExplainQueries(db, func(query string, plan []string, err error) {
			require.NoError(t, err, query)
			require.NotEmpty(t, plan)
			if why := astray(asking, query, plan); why != "" {
				t.Errorf("%s: %s\n%s\n%s", asking, why, query, strings.Join(plan, "\n"))
			}
			seen[query] = true
		})
		askPrivate(t, db, &asking)
		require.Greater(t, len(seen), 20)
	})
}

// fillAccounts makes an account with many tokens and sessions among many with few.
func fillAccounts(t *testing.T, db *storage.DB) {
	n := 0
	hash := func() (h [32]byte) { n++; copy(h[:], fmt.Sprint("hash ", n)); return h }
	for chunk := range 10 {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range 200 {
				id := fmt.Sprintf("acc_%d-%d", chunk, i)
				if err := tx.InsertAccount(ctx, storage.Account{ID: id, Name: id, Role: protocol.RoleOwner}); err != nil {
					return err
				}
				if i%2 == 0 {
					id = busyAccount
				}
				handle := ""
				if i%4 == 0 {
					handle = fill.Handle(0)
				}
				token := storage.Token{ID: protocol.NewID(protocol.TokenID, tx.Now), Hash: hash(), Account: id, Handle: handle}
				if i%8 == 0 {
					token.RevokedAt = &tx.Now
				}
				if err := tx.InsertToken(ctx, token); err != nil {
					return err
				}
				if err := tx.InsertSession(ctx,
					storage.Session{ID: protocol.NewID(protocol.SessionID, tx.Now), Hash: hash(), Account: id, ExpiresAt: tx.Now.Add(time.Hour)},
				); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

const busyAccount = "acc_0-0"

// askPrivate asks for two pages of each list, for who has much and for who has
// little.
func askPrivate(t *testing.T, db *storage.DB, asking *string) {
	ask := func(what string, list func(tx *storage.Tx, ctx context.Context, after string) (*string, error)) {
		*asking = what
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			next, err := list(tx, ctx, "")
			if err == nil && next != nil {
				_, err = list(tx, ctx, *next)
			}
			return err
		})
	}
	var thread string
	for _, handle := range []string{fill.Handle(0), fill.Handle(30), fill.Handle(499)} {
		for _, state := range []protocol.ThreadState{"", protocol.ThreadOpen, protocol.ThreadAnswered, protocol.ThreadClosed} {
			ask("threads of "+handle+" "+string(state), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				p, err := tx.ListThreads(ctx, handle, state, 20, after)
				if len(p.Items) > 0 {
					thread = p.Items[0].ID
				}
				return p.Next, err
			})
		}
		for _, state := range []protocol.CallbackState{"", protocol.CallbackDone, protocol.CallbackFailed, protocol.CallbackWaiting} {
			ask("callbacks of "+handle+" "+string(state), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				p, err := tx.ListCallbacks(ctx, handle, state, "", 20, after)
				return p.Next, err
			})
		}
		ask("blocked by "+handle, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListContactBlocks(ctx, handle, 20, after)
			return p.Next, err
		})
		ask("posts of "+handle, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListOwnPosts(ctx, handle, 20, after)
			return p.Next, err
		})
		ask("tokens for "+handle, func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
			_, err := tx.ListTokens(ctx, handle)
			return nil, err
		})
		for _, names := range [][]string{{"handle:" + handle}, {"handle:" + handle, "account:x", "key:y"}} {
			ask(fmt.Sprint("news of ", names), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				at, err := storage.ParseNewsCursor(after)
				require.NoError(t, err)
				_, upTo, _, err := tx.News(ctx, names, at, 20)
				next := storage.NewsCursor(upTo)
				return &next, err
			})
		}
		*asking = "open threads with " + handle
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.CountOpenThreads(ctx, handle, "handle:"+fill.Handle(3), 10)
			return err
		})
	}
	require.NotEmpty(t, thread)
	ask("messages", func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
		p, err := tx.ListMessages(ctx, thread, 1, after)
		return p.Next, err
	})
	for _, state := range []protocol.CallbackState{"", protocol.CallbackDone} {
		ask("of a thread, deliveries", func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListCallbacks(ctx, fill.Handle(0), state, thread, 20, after)
			return p.Next, err
		})
	}
	ask("by a read token", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		_, err := tx.ThreadByToken(ctx, protocol.SecretHash(fill.ReadToken(7)))
		return nil, err
	})
	for _, account := range []string{busyAccount, "acc_3-1"} {
		ask("tokens of "+account, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.AccountTokens(ctx, account, 20, after)
			return p.Next, err
		})
		ask("sessions of "+account, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListSessions(ctx, account, 20, after)
			return p.Next, err
		})
	}
	askOperators(t, ask)
}

func askOperators(t *testing.T, ask func(what string, list func(tx *storage.Tx, ctx context.Context, after string) (*string, error))) {
	var subject, reported string
	for name, list := range map[string]func(tx *storage.Tx, ctx context.Context, after string) (*string, error){
		"accounts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListAccounts(ctx, 20, after)
			return p.Next, err
		},
		"audit": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListAudit(ctx, 20, after)
			return p.Next, err
		},
		"moderation log": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListModeration(ctx, 20, after)
			return p.Next, err
		},
		"notes": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListNotes(ctx, protocol.NoteQuery{Paging: protocol.Paging{After: after}})
			subject = p.Items[0].Subject
			return p.Next, err
		},
		"reported posts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListReview(ctx, 20, after)
			reported = p.Items[0]
			return p.Next, err
		},
		"hidden posts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListHidden(ctx, 20, after)
			return p.Next, err
		},
	} {
		ask(name, list)
	}
	require.NotEmpty(t, subject)
	ask("of a post, reports", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		if _, err := tx.ListReports(ctx, reported, 20); err != nil {
			return nil, err
		}
		_, err := tx.OpenReports(ctx, reported)
		return nil, err
	})
	ask("notes on a post", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		_, err := tx.ListNotes(ctx, protocol.NoteQuery{Subject: subject})
		return nil, err
	})
	for _, kind := range []protocol.BlockKind{"", protocol.BlockNetwork, protocol.BlockHost, protocol.BlockKey} {
		ask("blocks "+string(kind), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ListBlocks(ctx, protocol.NodeBlockQuery{Kind: kind, Paging: protocol.Paging{After: after}})
			return p.Next, err
		})
	}
}
