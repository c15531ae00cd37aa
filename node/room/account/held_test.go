package account_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

const (
	heldIdentity = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	heldOwner    = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
	heldWallet   = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
)

// holdEverything gives an account one credential of each kind, besides what it has: its session, and the key and token of its profile.
func holdEverything(h *nodetest.House, account, handle string) {
	delegated := storage.DelegatedKey{Identity: heldIdentity, Thumbprint: strings.Repeat("d", 43), Account: "eip155:1:" + heldOwner, PublicJWK: "{}",
		EndsAt: time.Now().Add(time.Hour)}
	require.NoError(h.T, h.Admin().PutIdentity(h.T.Context(), handle, heldIdentity, strings.Repeat("k", 43)))
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		e, err := tx.Enrolments().ByIdentity(ctx, heldIdentity)
		if err != nil {
			return err
		}
		e.Owner, e.Wallet = heldOwner, heldWallet
		if err := tx.Enrolments().Bind(ctx, e); err != nil {
			return err
		}
		if err := tx.DelegatedKeys().Put(ctx, delegated, 10); err != nil {
			return err
		}
		if err := tx.Accounts().SetWallet(ctx, account, "0x90f79bf6eb2c4f870365e785982e1f101e93b906"); err != nil {
			return err
		}
		if err := tx.Passkeys().Insert(ctx, storage.Passkey{ID: protocol.NewID(protocol.PasskeyID, tx.Now), Credential: []byte(account), Account: account,
			PublicKey: []byte{1}, Domain: "n1.example", Name: "Phone"}); err != nil {
			return err
		}
		return tx.Devices().Put(ctx, storage.Device{ID: protocol.NewID(protocol.DeviceID, tx.Now), Reader: account, Endpoint: "https://push.example/" + account,
			P256dh: []byte{1}, Auth: []byte{1}, Program: "Firefox"}, 5)
	}))
}

// TestCredentials: everything that acts for an account is in one list, is renamed and removed there, and is nobody else's.
func TestCredentials(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		pair := h.Hosted("asha")
		h.Hosted("ravi")
		acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		_, hisLink := h.OpenAccount("Ravi", protocol.RoleOwner, "ravi@example.org", "ravi")
		h.AccountToken(acc.ID, "My assistant", protocol.ScopePost)
		bearer := "Bearer " + h.OwnerToken("asha")
		holdEverything(h, acc.ID, "asha")
		mine := []string{"Cookie", "stoa_session=" + h.SignIn(link), "Origin", h.Base, "Sec-Fetch-Site", "same-origin"}
		his := []string{"Cookie", "stoa_session=" + h.SignIn(hisLink), "Origin", h.Base, "Sec-Fetch-Site", "same-origin"}
		list := func(who []string) map[string]protocol.HeldCredential {
			found := map[string]protocol.HeldCredential{}
			for _, c := range nodetest.As[protocol.Credentials](h.Ask("GET", "/api/owner/credentials", "", who...).Is(200)).Items {
				found[string(c.Kind)+" "+c.ID] = c
			}
			return found
		}

		before := list(mine)
		kinds := map[protocol.CredentialKind]int{}
		for _, c := range before {
			kinds[c.Kind]++
		}
		require.Equal(t, map[protocol.CredentialKind]int{protocol.HeldIdentity: 1, protocol.HeldWallet: 3, protocol.HeldKey: 1, protocol.HeldDelegated: 1,
			protocol.HeldPasskey: 1, protocol.HeldSession: 1, protocol.HeldDevice: 1, protocol.HeldToken: 3}, kinds)
		require.False(t, before["wallet "+heldOwner].Removable, "the chain says so")
		for key := range list(his) {
			require.NotContains(t, before, key)
		}

		key := "key " + pair.Thumbprint()
		require.Nil(t, before[key].LastUsedAt)
		h.Signed(pair, `{"kind":"offer","title":"Looms","body":"Two looms."}`, func(*http.Request, *httpsig.SignOptions) {}).Is(201)
		require.WithinDuration(t, time.Now(), *list(mine)[key].LastUsedAt, time.Minute)

		for name, c := range before {
			path := "/api/owner/credentials/" + string(c.Kind) + "/" + c.ID
			require.Equal(t, 404, h.Ask("PUT", path+"/name", `{"name":"Not yours"}`, his...).Code, name)
			require.Equal(t, 404, h.Ask("DELETE", path, "", his...).Code, name)
			require.Equal(t, 403, h.Ask("DELETE", path, "", "Authorization", bearer).Code, "a token is no browser")
			require.Equal(t, "Mine", nodetest.As[protocol.HeldCredential](h.Ask("PUT", path+"/name", `{"name":"Mine"}`, mine...).Is(200)).Name, name)
			require.Equal(t, "Mine", list(mine)[name].Name, name)
		}
		require.Equal(t, 422, h.Ask("PUT", "/api/owner/credentials/"+strings.Replace(key, " ", "/", 1)+"/name", `{"name":"two\nlines"}`, mine...).Code)
		var tokens protocol.Page[protocol.Token]
		h.Ask("GET", "/api/owner/tokens", "", mine...).Into(&tokens)
		require.Equal(t, "Mine", tokens.Items[0].Name, "the other pages show it too")

		for name, c := range before {
			path := "/api/owner/credentials/" + string(c.Kind) + "/" + c.ID
			switch {
			case c.Kind == protocol.HeldIdentity || c.Current: // later: what depends on it goes with it
				continue
			case !c.Removable:
				require.Equal(t, 409, h.Ask("DELETE", path, "", mine...).Code, name)
				continue
			}
			h.Ask("DELETE", path, "", mine...).Is(204)
			require.NotContains(t, list(mine), name)
			require.Equal(t, 404, h.Ask("DELETE", path, "", mine...).Code, name)
		}
		h.Ask("DELETE", "/api/owner/credentials/identity/"+heldIdentity, "", mine...).Is(204)
		for name := range list(mine) {
			require.True(t, strings.HasPrefix(name, "session "), name)
		}
		names := 0
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			kept, err := tx.CredentialNames().Of(ctx, acc.ID)
			names = len(kept)
			return err
		}))
		require.LessOrEqual(t, names, 3, "of the session and of the wallets that the chain named")
	})
}
