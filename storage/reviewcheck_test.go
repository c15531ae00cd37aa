package storage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestCheck_Reviews: what must hold of reviews and order receipts is checked, and the statements that read them use
// their indexes.
func TestCheck_Reviews(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const agent = "eip155:1:0x00000000000000000000000000000000000000aa:1"
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "rao", Name: "Rao", Kind: protocol.Business}, ERC8004: agent})
			require.NoError(t, err)
			require.NoError(t, tx.Feedbacks().PutAgent(ctx, "eip155:1:0x00000000000000000000000000000000000000aa", storage.FeedbackAgent{Agent: agent}, nil))
			for i, id := range []string{"rev_a", "rev_b"} {
				f := storage.Feedback{ID: id, Agent: agent, Client: "0x1", Index: uint64(i), Place: int64(i), At: tx.Now, State: storage.FeedbackCounted, Rating: 9000,
					Reason: protocol.ByConfirmed, Proof: "payment " + id}
				must.Get(tx.Feedbacks().Insert(ctx, f))(t)
				free, err := tx.Feedbacks().Claim(ctx, id, []string{f.Proof})
				require.True(t, free)
				require.NoError(t, err)
				require.NoError(t, tx.Feedbacks().Add(ctx, agent, protocol.ByConfirmed, 1, f.Rating))
				require.NoError(t, tx.OrderReceipts().Insert(ctx, storage.StoredReceipt{ID: "rcpt_" + id, Handle: "rao"}, 20))
				require.NoError(t, tx.OrderReceipts().Import(ctx, storage.StoredReceipt{ID: "rcpt_old" + id, Handle: "rao"}, 20))
			}
			require.ErrorIs(t, tx.OrderReceipts().Import(ctx, storage.StoredReceipt{ID: "rcpt_x", Handle: "rao"}, 4), storage.ErrFull)
			return nil
		}))
		require.NoError(t, db.Check(t.Context()))
		for _, test := range []struct{ do, undo, want string }{
			{`UPDATE feedback_sum SET reviews = 3`, `UPDATE feedback_sum SET reviews = 2`, "a sum of reviews that is wrong"},
			{`UPDATE feedback_sum SET stars = 1`, `UPDATE feedback_sum SET stars = 18000`, "a sum of reviews that is wrong"},
			{`UPDATE feedback_sum SET confirmed_reviews = 1`, `UPDATE feedback_sum SET confirmed_reviews = 2`, "a sum of reviews that is wrong"},
			{`UPDATE feedback SET reason = 'paid-provider' WHERE id = 'rev_b'`, `UPDATE feedback SET reason = 'paid-confirmed'`, "a sum of reviews that is wrong"},
			{`UPDATE profile SET provider_stars = 1`, `UPDATE profile SET provider_stars = 0`, "a reputation that is not the sum of the reviews"},
			{`INSERT INTO review_buyer (buyer, agent, at, feedback) VALUES ('wallet:0x1', 'x', 1, 'rev_b')`, `DELETE FROM review_buyer`,
				"the buyer of one that does not count: rev_b"},
			{`UPDATE feedback SET agent = 'x' WHERE id = 'rev_b'`, `UPDATE feedback SET agent = '` + agent + `'`, "a sum of reviews that is wrong"},
			{`UPDATE feedback SET state = 'uncounted' WHERE id = 'rev_b'`, `UPDATE feedback SET state = 'counted'`, "an order or payment that no counted review uses"},
			{`UPDATE feedback_proof SET name = 'x' WHERE feedback = 'rev_b'`, `UPDATE feedback_proof SET name = 'payment rev_b' WHERE name = 'x'`,
				"a counted review without its order or payment"},
			{`UPDATE profile SET stars = 7`, `UPDATE profile SET stars = 18000`, "a reputation that is not the sum of the reviews"},
			{`UPDATE feedback_agent SET since = 9`, `UPDATE feedback_agent SET since = 0`, "a counted review of a former owner"},
			{`UPDATE feedback_agent SET block = 9`, `UPDATE feedback_agent SET block = NULL`, "a reputation that is not the sum of the reviews"},
			{`UPDATE order_receipt SET n = 9 WHERE id = 'rcpt_rev_b'`, `UPDATE order_receipt SET n = 2 WHERE n = 9`, "order receipts with a gap"},
			{`UPDATE order_receipt SET handle = 'gone'`, `UPDATE order_receipt SET handle = 'rao'`, "or of no profile: gone"},
		} {
			require.NoError(t, storage.Exec(t.Context(), db, test.do))
			require.ErrorContains(t, db.Check(t.Context()), test.want, test.do)
			require.NoError(t, storage.Exec(t.Context(), db, test.undo))
			require.NoError(t, db.Check(t.Context()), test.undo)
		}
		for index, plan := range storage.ReviewPlans(t.Context(), t, db) {
			if storage.OnPostgres(db) { // which of several it takes depends on how much there is
				require.NotContains(t, plan, "Seq Scan")
				continue
			}
			require.Contains(t, plan, "INDEX "+index+" ")
			require.NotContains(t, plan, "TEMP B-TREE", index)
		}
	})
}

// TestFeedbacks_ShowDeleted: a deleted item of the feed, which has no document, does not stop that the others of an identity's
// reviews are shown or hidden.
func TestFeedbacks_ShowDeleted(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for _, text := range []string{
			insertOne("rev_a", "counted", "NULL"), strings.Replace(insertOne("rev_b", "counted", "NULL"), "1, 7, 7", "2, 8, 8", 1),
			`INSERT INTO feed (seq, id, type, subject_id, visible, doc, n) VALUES (1, 'feed_1', 'review', 'rev_a', FALSE, '', 1),
				(2, 'feed_2', 'review', 'rev_b', FALSE, '{"actor":{"handle":"rao"}}', 2), (3, 'feed_3', 'board_post', 'post_x', FALSE, '', 3)`,
		} {
			require.NoError(t, storage.Exec(t.Context(), db, text), text)
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Feedbacks().Show(ctx, reviewedAgent, "rao", true)
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 1, must.Get(storage.Count(ctx, tx, `feed WHERE visible`))(t))
			return nil
		})
	})
}
