package account_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/push/pushtest"
	"stoa/protocol"
	"stoa/storage"
)

// subscription is the body that subscribes a browser.
func subscription(b *pushtest.Browser, more map[string]any) string {
	body := map[string]any{"endpoint": b.Endpoint, "p256dh": b.P256dh, "auth": b.Auth, "language": "en", "program": "Test"}
	for name, value := range more {
		body[name] = value
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestDevices: what happens to a profile reaches the devices of its account, and an answer the browser of who asked, each encrypted for
// it, in its language, with the page that it is about. A subscription that has ended is deleted, and one at an address that is
// not public refused.
func TestDevices(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Work()
		h.Agent("asha", nodetest.OpenPolicy)
		_, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		session := []string{"Cookie", "stoa_session=" + h.SignIn(link)}
		const path = "/api/owner/devices"
		phone, visitor := pushtest.New(t), pushtest.New(t)
		list := func() protocol.Devices {
			return nodetest.As[protocol.Devices](h.Ask("GET", path, "", session...).Is(200))
		}
		phone.Key = list().Key
		visitor.Key = phone.Key

		require.Equal(t, 401, h.Ask("POST", path, subscription(phone, nil)).Code, "nobody is signed in")
		require.Equal(t, 401, h.Ask("POST", path, subscription(phone, nil), "Authorization", "Bearer "+h.OwnerToken("asha")).Code, "a token is no browser")
		for why, bad := range map[string]map[string]any{
			"/endpoint": {"endpoint": "http://push.example/x"}, "/p256dh": {"p256dh": "B" + visitor.Auth + visitor.Auth + visitor.Auth + visitor.Auth[:20]},
			"/auth": {"auth": "short"},
		} {
			refused := h.Ask("POST", path, subscription(phone, bad), session...)
			require.Equal(t, 422, refused.Code, why)
			require.Equal(t, why, refused.Problem().Errors[0].Pointer)
		}
		h.Ask("POST", path, subscription(phone, map[string]any{"language": "hi"}), session...).Is(201)
		require.Len(t, list().Items, 1)

		c := begun(h, "asha", `{"message":"Is there a table for two?"}`)
		got := phone.Next(t)
		require.Equal(t, "किसी ने @asha को लिखा", got.Title)
		require.Equal(t, "/account/threads/"+c.ThreadID, got.URL)
		require.NotContains(t, got.Body, "table", "what a notice mail does not say")

		mine := map[string]any{"of": c.ThreadID, "token": c.ReadToken}
		require.Equal(t, 404, h.Ask("POST", path, subscription(visitor, map[string]any{"of": c.ThreadID, "token": protocol.NewReadToken()})).Code)
		for range protocol.MaxVisitorDevices + 2 {
			h.Ask("POST", path, subscription(pushtest.New(t), mine)).Is(201)
		}
		h.Ask("POST", path, subscription(visitor, mine)).Is(201)
		h.Ask("POST", "/api/owner/threads/"+c.ThreadID+"/messages", `{"message":"Yes, at eight"}`, session...).Is(201)
		got = visitor.Next(t)
		require.Equal(t, "Your message was answered", got.Title)
		require.Equal(t, "/threads/"+c.ThreadID, got.URL)
		require.NotContains(t, got.Body, "eight")
		count := func(reader string) (n int) {
			require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				all, err := tx.Devices().Of(ctx, reader)
				n = len(all)
				return err
			}))
			return n
		}
		require.Equal(t, protocol.MaxVisitorDevices, count(storage.ThreadReader(c.ThreadID)), "the newest stay")

		visitor.Status.Store(http.StatusGone)
		require.Eventually(t, func() bool { // one that is just being sent stands for the next
			h.Ask("POST", "/api/owner/threads/"+c.ThreadID+"/messages", `{"message":"Or at nine"}`, session...).Is(201)
			return count(storage.ThreadReader(c.ThreadID)) == protocol.MaxVisitorDevices-1
		}, time.Minute, 200*time.Millisecond)

		fresh := pushtest.New(t) // the browser has another subscription
		h.Ask("POST", path, subscription(fresh, map[string]any{"former": phone.Endpoint})).Is(201)
		phone.Status.Store(http.StatusInternalServerError)
		begun(h, "asha", `{"message":"Another question"}`)
		require.Equal(t, "किसी ने @asha को लिखा", fresh.Next(t).Title)

		id := list().Items[0].ID
		require.Equal(t, 404, h.Ask("DELETE", path+"/"+id, "", "Authorization", "Bearer "+nodetest.OwnerOf(t, h, "mira")).Code)
		require.Equal(t, 204, h.Ask("DELETE", path+"/"+id, "", session...).Code)
		require.Empty(t, list().Items)
		for n := range protocol.MaxDevices + 1 {
			h.Ask("POST", path, subscription(phone, map[string]any{"endpoint": fmt.Sprint(phone.Endpoint, n)}), session...).Is(201)
		}
		require.Len(t, list().Items, protocol.MaxDevices)
	})
}

// begun begins a thread with an agent.
func begun(h *nodetest.House, handle, body string) (r protocol.ContactReceipt) {
	h.T.Helper()
	h.Ask("POST", "/api/public/agents/"+handle+"/contact", body, "Proof-Of-Work", h.Proof("contact")).Is(201).Into(&r)
	return r
}
