package web_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestBrowser_Access: an owner names what acts for the account, and removes some of it, in a real browser.
func TestBrowser_Access(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.Hosted("asha")
	acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	const erc8004, owner = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
	require.NoError(t, h.Admin().PutIdentity(t.Context(), "asha", erc8004, "WRRm18HdbffbjQCO5v4IHs0t8PK0gTa_pPVpkADu9Sc"))
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		e, err := tx.Enrolments().ByIdentity(ctx, erc8004)
		if err != nil {
			return err
		}
		e.Owner = owner
		if err := tx.Enrolments().Bind(ctx, e); err != nil {
			return err
		}
		return tx.DelegatedKeys().Put(ctx, storage.DelegatedKey{Identity: erc8004, Thumbprint: "Nd7K9hbz3pX2bGEvBEZfHO8xvbT5kG7QvVnYXJc9E1o",
			Account: "eip155:1:" + owner, PublicJWK: "{}", EndsAt: time.Now().Add(24 * time.Hour)}, 10)
	}))
	h.AccountToken(acc.ID, "My assistant", protocol.ScopePost, protocol.ScopeInbox)
	b := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))

	const page = "/account/access"
	require.Equal(t, 200, b.Open(page))
	b.Picture("access")
	for _, text := range []string{"Post on the board and in threads", "No passkey yet.", "No device yet.", "this browser", owner, erc8004, "Delegated keys"} {
		require.Contains(t, b.Text("main"), text)
	}
	require.Equal(t, 1, nodetest.Look[int](b, `document.querySelectorAll('a[href="/account/security"]:not(nav *)').length`), "the way to add a passkey")

	token := `form[id^="rename_credential-token-"]`
	require.Equal(t, 422, b.Send(token, "name", " "))
	require.Contains(t, b.Text(token), "Fill this in.", b.Text("main"))
	require.True(t, nodetest.Look[bool](b, `document.querySelector('`+token+`').closest("details").open`), "the refused form is open")
	require.Equal(t, 200, b.Send(token, "name", "Shopping <b>helper</b>"))
	require.Contains(t, b.Text(".done"), "The name was saved.")
	require.Contains(t, b.Text("main"), "Shopping <b>helper</b>")
	require.Equal(t, 200, b.Send(`form[id^="rename_credential-delegated-"]`, "name", "Phone of the studio"))
	require.Contains(t, b.Text("main"), "Phone of the studio")
	b.Picture("access-named")

	summary := `[aria-labelledby="access-delegated"] details:last-of-type summary`
	require.NoError(t, chromedp.Do(b.Ctx, chromedp.Click(chromedp.CSS(summary))))
	require.Contains(t, b.Text(`[aria-labelledby="access-delegated"] details[open]`), "until a wallet names it again", "what removing it means is said before")
	require.Equal(t, 200, b.Send(`form[id^="remove_credential-delegated-"]`))
	require.Contains(t, b.Text(".done"), "It was removed.")
	require.Contains(t, b.Text("main"), "No delegated key.")
	require.Equal(t, 200, b.Send(`form[id^="remove_credential-token-"]`))
	require.Contains(t, b.Text("main"), "No token yet.")
	require.Equal(t, 200, b.Send(`form[id^="remove_credential-identity-"]`))
	require.Contains(t, b.Text("main"), "No identity yet.")
	require.NotContains(t, b.Text("main"), owner)
	b.Picture("access-empty")
}
