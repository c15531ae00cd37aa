package nodetest

import (
	"context"
	_ "image/png" // a screenshot
	"net/url"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// OpenBoard opens the attention board of a new profile, paid by UPI, and returns the owner's Authorization.
func (h *House) OpenBoard(handle, board string) (token string) {
	h.T.Helper()
	token = h.Agent(handle, OpenPolicy)
	for path, body := range map[string]string{
		"/api/owner/payment-account": `{"handle":"` + handle + `","provider":"upi","vpa":"` + handle + `@okbank","payeeName":"Asha Rao"}`,
		"/api/owner/attention":       `{"handle":"` + handle + `"` + board + `}`,
	} {
		h.Ask("PUT", path, body, "Authorization", token).Is(200)
	}
	return token
}

// SendForm posts a form of a page as a browser does.
func (h *House) SendForm(path string, form url.Values, headers ...string) Answer {
	h.T.Helper()
	return h.Ask("POST", path, form.Encode(), append([]string{
		"Content-Type", "application/x-www-form-urlencoded", "Accept", Accept, "Origin", h.Base, "Sec-Fetch-Site", "same-origin",
	}, headers...)...)
}

// Picture writes what the tab shows to the directory STOA_TEST_PICTURES, on a phone and on a desk, dark and light;
// without that variable it does nothing.
func (b *Tab) Picture(name string) {
	b.T.Helper()
	dir := os.Getenv("STOA_TEST_PICTURES")
	if dir == "" {
		return
	}
	for suffix, size := range map[string][2]int64{"phone": {390, 844}, "desk": {1280, 900}} {
		b.Screen(size[0], size[1])
		for _, scheme := range []string{"dark", "light"} {
			_, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			require.NoError(b.T, err)
			png, err := chromedp.Run(b.Ctx, chromedp.FullScreenshot(100))
			require.NoError(b.T, err)
			require.NoError(b.T, os.WriteFile(filepath.Join(dir, name+"-"+suffix+"-"+scheme+".png"), png, 0o600))
		}
	}
	b.Screen(390, 844)
}

// Screen sets the size of the tab.
func (b *Tab) Screen(width, height int64) {
	b.T.Helper()
	require.NoError(b.T, chromedp.Do(b.Ctx, chromedp.EmulateViewport(width, height)))
}

// Dead buries one new job of each kind, and returns their ids.
func (h *House) Dead(why string, kinds ...storage.JobKind) (ids []int64) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for _, kind := range kinds {
			if err := tx.Enqueue(ctx, storage.Job{Kind: kind, Args: []byte(`{}`), Lane: "test", Dedupe: "test " + string(kind)}); err != nil {
				return err
			}
			jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, kind, 1, "")
			if err != nil {
				return err
			}
			ids = append(ids, jobs.Items[0].ID)
			if err := tx.Jobs().Bury(ctx, jobs.Items[0].ID, why); err != nil {
				return err
			}
		}
		return nil
	}))
	return ids
}

// TakeBids opens the attention board of a person, as the owner: bids are paid by UPI.
func (h *House) TakeBids(handle string) {
	h.T.Helper()
	c := protocol.Caller{Standing: protocol.Session, Handle: handle, Handles: []string{handle}, Network: "n"}
	owned := protocol.Owned{Handle: handle}
	for op, in := range map[string]any{
		protocol.PutPaymentAccount.Name: protocol.PaymentDraft{Owned: owned, Provider: protocol.PayUPI, VPA: "asha@okbank"},
		protocol.PutAttentionBoard.Name: protocol.AttentionDraft{Owned: owned, Rules: "Yarn only.", Floor: "500", Slots: 3},
	} {
		_, err := h.Table.Invoke(h.T.Context(), hall.Request{Op: op, Args: Encoded(in), Door: "test", Caller: &c})
		require.NoError(h.T, err, op)
	}
}
