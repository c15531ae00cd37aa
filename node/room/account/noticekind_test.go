package account_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestNotice_Named: a post that names a profile is told with its address; not one that was hidden meanwhile. Who chose the kinds before there was
// this one is not told, who left the choice out is.
func TestNotice_Named(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		hooks := make(chan string, 9)
		hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			hooks <- string(raw)
		}))
		t.Cleanup(hook.Close)
		for _, handle := range []string{"asha", "ravi", "rao"} {
			h.Hosted(handle)
		}
		token := h.OwnerToken("rao")
		var hidden, made protocol.MadePost
		h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Hidden","body":"@asha look"}`, "Authorization", "Bearer "+token).Is(201)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for handle, events := range map[string][]protocol.NoticeEvent{"asha": nil, "ravi": {protocol.PostHidden}} {
				s := storage.NotifySettings{Handle: handle, Mail: handle + "@example.org", Confirmed: true, Webhook: hook.URL, Events: events}
				if err := tx.Profiles().PutNotifySettings(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}))
		h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Hidden","body":"@asha look"}`, "Authorization", "Bearer "+token).Is(201).Into(&hidden)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, hidden.ID, protocol.Hidden, storage.HeldByPolicy)
		}))
		h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Yarn","body":"@asha and @ravi look"}`, "Authorization", "Bearer "+token).Is(201).Into(&made)
		h.Work()
		letter := box.Next(t, h)
		require.Equal(t, "asha@example.org", letter.To)
		require.Equal(t, "A post names @asha", letter.Subject)
		require.Contains(t, letter.Text, "    | ")
		require.Contains(t, letter.Text, ": Yarn\n")
		require.Contains(t, letter.Text, h.Base+"/board/"+made.ID)
		select {
		case body := <-hooks:
			require.Contains(t, body, `"event":"profile.mentioned"`)
			require.Contains(t, body, made.ID)
		case <-time.After(time.Minute):
			t.Fatal("the webhook was not called")
		}
		require.Eventually(t, func() bool { // nothing more is to be told
			waits := false
			require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
				for _, j := range jobs.Items {
					waits = waits || slices.Contains([]storage.JobKind{storage.NoticeJob, storage.MailJob, storage.WebhookJob}, j.Kind)
				}
				return err
			}))
			return !waits
		}, time.Minute, 20*time.Millisecond)
		require.Empty(t, hooks)
	})
}
