package attention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestReceipt_Told: the profile of this node that paid for a bid is told of the receipt, with its number; a bidder without a profile is not.
func TestReceipt_Told(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 3})
		w.person("ravi", protocol.Person)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "ravi", Webhook: "https://hook.example/n"})
		}))
		mine, other := must.Get(w.bids(owner("ravi"), "700"))(w.t), must.Get(w.bids(keyed(1), "700"))(w.t)
		w.delivers(v.Pays(other.Bid.ID, 700_00))
		w.delivers(v.Pays(mine.Bid.ID, 700_00))
		jobs, _, err := w.db.ClaimJobs(w.t.Context(), "test", 50, time.Minute)
		require.NoError(w.t, err)
		var told []protocol.Notice
		for _, j := range jobs {
			if j.Kind == storage.NoticeJob {
				n := must.JSON[protocol.Notice](j.Args)(w.t)
				told = append(told, n)
			}
		}
		require.Len(w.t, told, 1)
		require.Equal(w.t, protocol.Notice{Handle: "ravi", Event: protocol.ReceiptIssued, Subject: mine.Bid.ID, Title: "Receipt 2026-27/000002 of ₹700 to @asha",
			At: told[0].At}, told[0])
	})
}
