package node

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// TestOperator_Accounts: an operator opens an account, signs its owner in again and
// closes it, over HTTP with a token of both scopes.
func TestOperator_Accounts(t *testing.T) {
	t.Parallel()
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		h.hosted("asha")
		o := h.operator()
		narrow := h.ask("GET", "/api/operator/accounts", "", "Authorization", o.bearer)
		require.Equal(t, 403, narrow.Code, "a moderator's token is no way to be anyone")
		require.Contains(t, narrow.Body.String(), "scope account")
		secret, _, err := h.Admin().CreateAccountToken(t.Context(), o.account, "all", 0, protocol.ScopeOperator, protocol.ScopeAccount)
		require.NoError(t, err)
		o.bearer = "Bearer " + secret
		const path = "/api/operator/accounts"

		var opened protocol.OpenedAccount
		o.do(201, "POST", path, protocol.NewAccount{Name: "Asha", Mail: "Asha@Example.org", Handles: []string{"asha"}}, &opened)
		require.Equal(t, protocol.RoleOwner, opened.Account.Role)
		require.Equal(t, "asha@example.org", *opened.Account.Mail)
		require.Equal(t, []string{"asha"}, opened.Account.Handles)
		o.do(409, "POST", path, protocol.NewAccount{Name: "Other", Mail: "asha@example.org"}, nil)
		o.do(404, "POST", path, protocol.NewAccount{Name: "Other", Handles: []string{"nobody"}}, nil)
		o.do(422, "POST", path, map[string]any{"name": "a\nb", "mail": "none", "role": "king"}, nil)
		require.Equal(t, 422, h.ask("POST", path, `{"name":"x"}`, "Authorization", o.bearer, "Idempotency-Key", "k").Code, "a kept answer would be a stored link")

		var page protocol.Page[protocol.KnownAccount]
		o.do(200, "GET", path, nil, &page)
		require.Equal(t, []string{opened.Account.ID, o.account}, []string{page.Items[0].ID, page.Items[1].ID}, "what was refused opened nothing")

		cookies := []string{"stoa_session=" + h.signIn(opened.SignIn.URL)}
		var link protocol.SignInLink
		for _, name := range []string{opened.Account.ID, "asha"} {
			o.do(201, "POST", path+"/"+name+"/sign-in", map[string]any{}, &link)
			require.True(t, strings.HasPrefix(link.URL, h.Base+"/sign-in?ticket="))
			cookies = append(cookies, "stoa_session="+h.signIn(link.URL))
		}
		o.do(201, "POST", path+"/asha/sign-in", map[string]any{}, &link)
		o.do(404, "POST", path+"/nobody/sign-in", map[string]any{}, nil)
		o.do(404, "POST", path+"/"+protocol.NewID(protocol.AccountID, page.Items[0].CreatedAt)+"/sign-in", map[string]any{}, nil)
		token := "Bearer " + h.ownerToken("asha")
		require.NoError(t, h.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org", Confirmed: true})
		}))

		o.do(409, "DELETE", path+"/"+o.account, nil, nil)
		o.do(204, "DELETE", path+"/asha", nil, nil)
		o.do(404, "DELETE", path+"/asha", nil, nil)
		for _, cookie := range cookies {
			require.Equal(t, 401, h.ask("GET", "/api/owner/account", "", "Cookie", cookie).Code, "at once")
		}
		require.Equal(t, 401, h.ask("GET", "/api/owner/account", "", "Authorization", token).Code)
		_, err = h.begin(link.URL)
		require.Equal(t, protocol.Gone, protocol.CodeOf(err))
		require.Equal(t, 200, h.ask("GET", "/api/public/agents/asha", "").Code, "the profile stays")
		require.NoError(t, h.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			s, err := tx.Profiles().NotifySettings(ctx, "asha")
			require.Empty(t, s.Mail, "who had the profile is told nothing more")
			return err
		}))
		o.do(201, "POST", path, protocol.NewAccount{Name: "Asha again", Mail: "asha@example.org", Handles: []string{"asha"}}, nil)

		require.NoError(t, h.Admin().SetMail(t.Context(), "asha", "elsewhere@example.org"))
		o.do(200, "GET", path, nil, &page)
		require.Equal(t, "elsewhere@example.org", *page.Items[0].Mail)
	})
}
