package account_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestInvitations: an account lists what it made within 30 days, also what lapsed meanwhile, which still counts; what it withdraws does not count.
func TestInvitations(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.Registrations, c.OwnerInvitations = "invite", 3 })
		h.Hosted("asha")
		h.Hosted("ravi")
		auth := []string{"Authorization", "Bearer " + h.OwnerToken("asha")}
		other := []string{"Authorization", "Bearer " + h.OwnerToken("ravi")}
		var me protocol.Account
		h.Ask("GET", "/api/owner/account", "", auth...).Is(200).Into(&me)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			now := tx.Now
			for _, days := range []int{-31, -20} {
				tx.Now = now.AddDate(0, 0, days)
				if _, err := h.Accounts.Invite(ctx, tx, protocol.Caller{Standing: protocol.Session, Account: me.ID}, protocol.NewInvitation{Note: "old"}); err != nil {
					return err
				}
			}
			tx.Now = now
			require.Equal(t, 1, must.Get(tx.PruneExpired(ctx))(t), "the one of more than 30 days ago")
			return nil
		}))
		list := func(auth []string) (out protocol.Invitations) {
			h.Ask("GET", "/api/owner/invitations", "", auth...).Is(200).Into(&out)
			return out
		}
		made := nodetest.As[protocol.Invited](h.Ask("POST", "/api/owner/invitations", `{"note":"For Ravi"}`, auth...).Is(201))
		mine := list(auth)
		require.Len(t, mine.Items, 2)
		require.Equal(t, []string{"open", "lapsed"}, []string{mine.Items[0].State, mine.Items[1].State})
		require.Equal(t, []string{made.ID, "For Ravi"}, []string{mine.Items[0].ID, mine.Items[0].Note})
		require.Equal(t, 1, *mine.Left, "what lapsed counts")
		require.Empty(t, list(other).Items)
		require.Equal(t, 3, *list(other).Left)

		h.Ask("DELETE", "/api/owner/invitations/"+made.ID, "", other...).Is(404)
		h.Ask("DELETE", "/api/owner/invitations/"+made.ID, "", auth...).Is(204)
		h.Ask("DELETE", "/api/owner/invitations/"+made.ID, "", auth...).Is(404)
		require.Equal(t, 2, *list(auth).Left)
		join := func(handle, code string) nodetest.Answer {
			return h.Ask("POST", "/api/public/profiles", `{"kind":"person","handle":"`+handle+`","name":"x","invitation":"`+code+`"}`, "Proof-Of-Work", h.Proof("join"))
		}
		join("guest", made.Code).Is(422)
		used := nodetest.As[protocol.Invited](h.Ask("POST", "/api/owner/invitations", `{}`, auth...).Is(201))
		join("guest", used.Code).Is(201)
		first := list(auth).Items[0]
		require.Equal(t, "used", first.State)
		require.Equal(t, "guest", *first.Became)
		h.Ask("DELETE", "/api/owner/invitations/"+used.ID, "", auth...).Is(404)

		require.Nil(t, list([]string{"Cookie", "stoa_session=" + h.SignInOperator()}).Left, "any number")
	})
}
