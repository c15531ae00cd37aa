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
	"stoa/protocol/must"
	"stoa/storage"
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

// plansPrivate runs the lists of owners and operators on a node with one busy owner
// among many, first pages and later ones, and looks at the plan of each query:
// nothing is read but the page.
func plansPrivate(t *testing.T, db *storage.DB) {
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
}

// fillOther fills tables of PostgreSQL that the lists read, because an empty table is
// read end to end whatever its indexes, and counts everything.
func fillOther(t *testing.T, url string) {
	own := must.Get(sql.Open("pgx", url))(t)
	for _, statement := range []string{
		// Some agents moved here.
		`INSERT INTO archive_post (handle, seq) SELECT 'moved-' || seq % 300, seq FROM post LIMIT 6000`,
		`INSERT INTO meeting (id, handle, state, shown, starts_at, ends_at, requester, mailbox, token_hash, asked_at, moved_at, moves, sequence,
			doc) SELECT 'mtg_' || seq, 'asked-' || seq % 300, 'submitted', TRUE, 1, 2, 'x', 'm'::bytea, ('t' || seq)::bytea, 1, 1, 1, 0, '{}' FROM post LIMIT 6000`,
		`INSERT INTO order_receipt (id, handle, n, order_id, agent, client, buyer, currency, minor, paid_at, issued_at, reason, token, doc)
			SELECT 'rcpt_' || seq, 'shop-' || seq % 300, seq, 'R-' || seq, '', '', '', 'INR', 1, 1, 1, '', '', '{}' FROM post LIMIT 6000`,
		`INSERT INTO merchant_place (name, seq, latitude, longitude) SELECT 'lane ' || seq % 300, seq, 13000000, 77600000 FROM post LIMIT 6000`,
		`VACUUM (ANALYZE)`,
	} {
		must.Get(own.Exec(statement))(t)
	}
	require.NoError(t, own.Close())
}

// fillAccounts makes an account with many tokens and sessions among many with few.
func fillAccounts(t *testing.T, db *storage.DB) {
	n := 0
	hash := func() (h [32]byte) { n++; copy(h[:], fmt.Sprint("hash ", n)); return h }
	for chunk := range 10 {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range 200 {
				id := fmt.Sprintf("acc_%d-%d", chunk, i)
				if err := tx.Accounts().Insert(ctx, storage.Account{ID: id, Name: id, Role: protocol.RoleOwner}); err != nil {
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
				if err := tx.Tokens().Insert(ctx, token); err != nil {
					return err
				}
				if err := tx.Sessions().Insert(ctx,
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
				p, err := tx.Threads().List(ctx, handle, state, 20, after)
				if len(p.Items) > 0 {
					thread = p.Items[0].ID
				}
				return p.Next, err
			})
		}
		for _, state := range []protocol.CallbackState{"", protocol.CallbackDone, protocol.CallbackFailed, protocol.CallbackWaiting} {
			ask("callbacks of "+handle+" "+string(state), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				p, err := tx.Callbacks().List(ctx, handle, state, "", 20, after)
				return p.Next, err
			})
		}
		ask("blocked by "+handle, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.ContactBlocks().List(ctx, handle, 20, after)
			return p.Next, err
		})
		for _, state := range []protocol.MeetingState{"", protocol.MeetingSubmitted} {
			ask("meeting requests to "+handle+" "+string(state), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				p, err := tx.Meetings().List(ctx, handle, state, 20, after)
				return p.Next, err
			})
		}
		ask("meetings of @"+handle, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Meetings().Agenda(ctx, handle, time.UnixMilli(0), time.UnixMilli(9), 20, after)
			return p.Next, err
		})
		for _, order := range []string{"", "R-1"} {
			ask("order receipts of @"+handle+" "+order, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				p, err := tx.OrderReceipts().List(ctx, handle, order, 20, after)
				return p.Next, err
			})
		}
		ask("posts of "+handle, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Posts().ListOwn(ctx, handle, 20, after)
			return p.Next, err
		})
		ask("tokens for "+handle, func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
			_, err := tx.Tokens().OfProfile(ctx, handle)
			return nil, err
		})
		for _, names := range [][]string{{"handle:" + handle}, {"handle:" + handle, "account:x", "key:y"}} {
			ask(fmt.Sprint("news of ", names), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				at := must.Get(storage.ParseNewsCursor(after))(t)
				_, upTo, _, err := tx.News().After(ctx, names, at, 20)
				next := storage.NewsCursor(upTo)
				return &next, err
			})
		}
		*asking = "open threads with " + handle
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Threads().CountOpen(ctx, handle, "handle:"+fill.Handle(3), 10))
		})
	}
	require.NotEmpty(t, thread)
	ask("messages", func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
		p, err := tx.Threads().ListMessages(ctx, thread, 1, after)
		return p.Next, err
	})
	for _, state := range []protocol.CallbackState{"", protocol.CallbackDone} {
		ask("of a thread, deliveries", func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Callbacks().List(ctx, fill.Handle(0), state, thread, 20, after)
			return p.Next, err
		})
	}
	ask("by a read token", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		_, err := tx.Threads().IDByToken(ctx, protocol.SecretHash(fill.ReadToken(7)))
		return nil, err
	})
	for _, account := range []string{busyAccount, "acc_3-1"} {
		ask("tokens of "+account, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Tokens().OfAccount(ctx, account, 20, after)
			return p.Next, err
		})
		ask("sessions of "+account, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Sessions().List(ctx, account, 20, after)
			return p.Next, err
		})
	}
	askOperators(t, ask)
}

func askOperators(t *testing.T, ask func(what string, list func(tx *storage.Tx, ctx context.Context, after string) (*string, error))) {
	var subject, reported string
	for name, list := range map[string]func(tx *storage.Tx, ctx context.Context, after string) (*string, error){
		"accounts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Accounts().List(ctx, "", 20, after)
			return p.Next, err
		},
		"audit": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.AuditLog().List(ctx, "", "", 20, after)
			return p.Next, err
		},
		"moderation log": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Moderation().ListLog(ctx, 20, after)
			return p.Next, err
		},
		"notes": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Moderation().ListNotes(ctx, protocol.NoteQuery{Paging: protocol.Paging{After: after}})
			subject = p.Items[0].Subject
			return p.Next, err
		},
		"reported posts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Moderation().ListReview(ctx, 20, after)
			reported = p.Items[0]
			return p.Next, err
		},
		"hidden posts": func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Posts().ListHidden(ctx, 20, after)
			return p.Next, err
		},
	} {
		ask(name, list)
	}
	require.NotEmpty(t, subject)
	ask("of a post, reports", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		if _, err := tx.Moderation().ListReports(ctx, reported, 20); err != nil {
			return nil, err
		}
		_, err := tx.Moderation().OpenReports(ctx, reported)
		return nil, err
	})
	ask("notes on a post", func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
		_, err := tx.Moderation().ListNotes(ctx, protocol.NoteQuery{Subject: subject})
		return nil, err
	})
	for _, kind := range []protocol.BlockKind{"", protocol.BlockNetwork, protocol.BlockHost, protocol.BlockKey} {
		ask("blocks "+string(kind), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Blocks().List(ctx, protocol.NodeBlockQuery{Kind: kind, Paging: protocol.Paging{After: after}})
			return p.Next, err
		})
	}
}
