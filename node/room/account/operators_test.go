package account_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestOperator_Accounts: an operator opens an account, signs its owner in again and
// closes it, over HTTP with a token of both scopes.
func TestOperator_Accounts(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		o := h.Operator()
		narrow := h.Ask("GET", "/api/operator/accounts", "", "Authorization", o.Bearer)
		require.Equal(t, 403, narrow.Code, "a moderator's token is no way to be anyone")
		require.Contains(t, narrow.Body.String(), "scope account")
		secret := h.AccountToken(o.Account, "all", protocol.ScopeOperator, protocol.ScopeAccount)
		o.Bearer = "Bearer " + secret
		const path = "/api/operator/accounts"

		var opened protocol.OpenedAccount
		o.Do(201, "POST", path, protocol.NewAccount{Name: "Asha", Mail: "Asha@Example.org", Handles: []string{"asha"}}, &opened)
		require.Equal(t, protocol.RoleOwner, opened.Account.Role)
		require.Equal(t, "asha@example.org", *opened.Account.Mail)
		require.Equal(t, []string{"asha"}, opened.Account.Handles)
		o.Do(409, "POST", path, protocol.NewAccount{Name: "Other", Mail: "asha@example.org"}, nil)
		o.Do(404, "POST", path, protocol.NewAccount{Name: "Other", Handles: []string{"nobody"}}, nil)
		o.Do(422, "POST", path, map[string]any{"name": "a\nb", "mail": "none", "role": "king"}, nil)
		require.Equal(t, 422, h.Ask("POST", path, `{"name":"x"}`, "Authorization", o.Bearer, "Idempotency-Key", "k").Code, "a kept answer would be a stored link")

		var page protocol.Page[protocol.KnownAccount]
		o.Do(200, "GET", path, nil, &page)
		require.Equal(t, []string{opened.Account.ID, o.Account}, []string{page.Items[0].ID, page.Items[1].ID}, "what was refused opened nothing")

		cookies := []string{"stoa_session=" + h.SignIn(opened.SignIn.URL)}
		var link protocol.SignInLink
		for _, name := range []string{opened.Account.ID, "asha"} {
			o.Do(201, "POST", path+"/"+name+"/sign-in", map[string]any{}, &link)
			require.True(t, strings.HasPrefix(link.URL, h.Base+"/sign-in?ticket="))
			cookies = append(cookies, "stoa_session="+h.SignIn(link.URL))
		}
		o.Do(201, "POST", path+"/asha/sign-in", map[string]any{}, &link)
		o.Do(404, "POST", path+"/nobody/sign-in", map[string]any{}, nil)
		o.Do(404, "POST", path+"/"+protocol.NewID(protocol.AccountID, page.Items[0].CreatedAt)+"/sign-in", map[string]any{}, nil)
		token := "Bearer " + h.OwnerToken("asha")
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org", Confirmed: true})
		}))

		o.Do(409, "DELETE", path+"/"+o.Account, nil, nil)
		o.Do(204, "DELETE", path+"/asha", nil, nil)
		o.Do(404, "DELETE", path+"/asha", nil, nil)
		for _, cookie := range cookies {
			require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Cookie", cookie).Code, "at once")
		}
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Authorization", token).Code)
		require.Equal(t, protocol.Gone, protocol.CodeOf(must.Err(h.Begin(link.URL))))
		require.Equal(t, 200, h.Ask("GET", "/api/public/agents/asha", "").Code, "the profile stays")
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(t, must.Get(tx.Profiles().NotifySettings(ctx, "asha"))(t).Mail, "who had the profile is told nothing more")
			return nil
		}))
		o.Do(201, "POST", path, protocol.NewAccount{Name: "Asha again", Mail: "asha@example.org", Handles: []string{"asha"}}, nil)

		require.NoError(t, h.Admin().SetMail(t.Context(), "asha", "elsewhere@example.org"))
		o.Do(200, "GET", path, nil, &page)
		require.Equal(t, "elsewhere@example.org", *page.Items[0].Mail)
	})
}
