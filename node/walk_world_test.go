package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

func newWalkWorld(t *testing.T, change func(*node.Config)) *walkWorld {
	one := nodetest.New(t, change, func(c *node.Config) { c.OwnerInvitations = 100 })
	w := &walkWorld{t: t, houses: []*nodetest.House{one}, tokens: map[string]string{}}
	if two := one.Second(change); two != one {
		w.houses = append(w.houses, two)
	}
	one.PutOpen("asha", nil)
	one.PutOpen("vikram", func(d *protocol.ProfileDraft) { d.Handle = "vikram" })
	require.Equal(t, 200, w.profile(one, "wares", false))
	for _, handle := range []string{"asha", "vikram", "wares"} {
		w.tokens[handle] = one.OwnerToken(handle)
	}
	w.agents = one.Agents(walkRows + 2)
	for _, h := range w.houses[1:] {
		h.Table.Gate.Chain = one.Table.Gate.Chain
	}
	w.fill(one)
	return w
}

// fill makes more than three pages of everything that is listed.
func (w *walkWorld) fill(h *nodetest.House) {
	w.t.Helper()
	asha, vikram := []string{"Authorization", "Bearer " + w.tokens["asha"]}, []string{"Authorization", "Bearer " + w.tokens["vikram"]}
	good := func(a nodetest.Answer) nodetest.Answer {
		w.t.Helper()
		require.Less(w.t, a.Code, 300, "%s", a.Body)
		return a
	}
	for range walkRows {
		complained(h)
	}
	good(h.Ask("POST", "/api/public/board", nodetest.GoodPost, asha...)).Into(&w.root)
	w.thread = thread(h, w.tokens["asha"]).ThreadID
	h.TakeBids("asha")
	followers(h, "asha", walkRows)
	account := nodetest.As[protocol.Account](good(h.Ask("GET", "/api/owner/account", "", asha...)))
	for i, a := range w.agents {
		good(h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"Reply %d","body":"b%d","inReplyTo":%q}`, i, i, w.root.ID), asha...))
		var post protocol.Post
		good(h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"Post %d","body":"body %d"}`, i, i), asha...)).Into(&post)
		require.Equal(w.t, 202, sendAs(a, h, "POST", "/api/public/board/"+post.ID+"/report", `{}`))
		good(h.Ask("POST", "/api/public/threads/"+w.thread+"/messages", fmt.Sprintf(`{"message":"Message %d"}`, i), asha...))
		good(h.Ask("POST", "/api/owner/threads/"+w.thread+"/messages", fmt.Sprintf(`{"message":"Answer %d"}`, i), asha...))
		good(h.Ask("POST", "/api/owner/tokens", fmt.Sprintf(`{"name":"t%d","scopes":["post"]}`, i), asha...))
		good(h.Ask("POST", "/api/owner/invitations", `{}`, asha...))
		_, _, err := h.Admin().OpenAccount(w.t.Context(), fmt.Sprint("Owner ", i), protocol.RoleOwner, "", nil)
		require.NoError(w.t, err)
		begun := w.begin(h, a, "asha", i)
		good(h.Ask("POST", "/api/owner/threads/"+begun+"/messages", `{"message":"Yes."}`, asha...))
		good(h.Ask("POST", "/api/owner/threads/"+w.begin(h, a, "vikram", i)+"/block", `{}`, vikram...))
		require.Equal(w.t, 200, w.profile(h, fmt.Sprintf("person-%d", i), true))
		h.TakeBids(fmt.Sprintf("person-%d", i))
		require.Equal(w.t, 200, w.bidOn(h, a))
		require.NoError(w.t, h.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{State: protocol.ProfilePending,
				Draft: protocol.ProfileDraft{Handle: fmt.Sprintf("waits-%d", i), Name: "Waits", Kind: protocol.Person}})
			return err
		}))
		r, _ := nodetest.StoredMeeting(protocol.MeetingSubmitted, time.Now().Add(48*time.Hour))
		require.NoError(w.t, h.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Meetings().Insert(ctx, r) }))
		require.NoError(w.t, h.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			const agent = "eip155:1:0x00000000000000000000000000000000000000aa:1"
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{ERC8004: agent,
				Draft: protocol.ProfileDraft{Handle: "reviewed", Name: "Reviewed", Kind: protocol.Business}})
			if err == nil {
				f := storage.Feedback{ID: protocol.NewID(protocol.ReviewID, tx.Now), Agent: agent, Client: "0x1", Index: uint64(i + 1), Block: 1,
					Place: int64(i + 1), At: tx.Now, State: storage.FeedbackCounted, Reason: protocol.ByPayment}
				_, err = tx.Feedbacks().Insert(ctx, f)
				require.NoError(w.t, tx.Feedbacks().Hide(ctx, f.ID, &tx.Now, "a name"))
				require.NoError(w.t, tx.Feedbacks().Add(ctx, agent, f.Reason, 1, 0))
			}
			return err
		}))
		require.NoError(w.t, h.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.OrderReceipts().Insert(ctx, storage.StoredReceipt{ID: protocol.NewID(protocol.ReceiptID, tx.Now), Handle: "asha", Order: fmt.Sprint(i),
				Currency: "INR", Minor: 1, PaidAt: tx.Now, IssuedAt: tx.Now}, protocol.MaxOrderReceipts); err != nil {
				return err
			}
			return w.ordered(ctx, tx, i)
		}))
		require.Equal(w.t, 200, w.profile(h, fmt.Sprintf("shop-%d", i), false))
		require.Equal(w.t, 200, w.operate(h, protocol.AddNote.Operation, protocol.NewNote{Subject: post.ID, Text: "seen"}))
		require.Equal(w.t, 200, w.operate(h, protocol.AddBlock.Operation, protocol.NewNodeBlock{Kind: protocol.BlockHost, Value: fmt.Sprintf("s%d.example", i)}))
		good(h.Ask("PUT", fmt.Sprintf("/api/owner/merchant/items/cup-%d", i), `{"name":"A cup"}`, "Authorization", "Bearer "+w.tokens["wares"]))
		h.Dead("no such host", storage.SilenceJob)
		_, hash := session.New(session.Cookie)
		require.NoError(w.t, h.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Sessions().Insert(ctx, storage.Session{ID: protocol.NewID(protocol.SessionID, tx.Now), Hash: hash, Account: account.ID,
				ExpiresAt: tx.Now.Add(time.Hour)})
		}))
	}
}

// ordered stores an order at the till of asha.
func (w *walkWorld) ordered(ctx context.Context, tx *storage.Tx, n int) error {
	till, err := tx.Tills().ByHandle(ctx, "asha")
	if errors.Is(err, storage.ErrNotFound) {
		till = &storage.Till{Handle: "asha"}
		err = tx.Tills().Put(ctx, till)
	}
	if err != nil {
		return err
	}
	o := &storage.StoredOrder{ID: protocol.NewID(protocol.OrderID, tx.Now), Till: till.ID, State: protocol.OrderCanceled, Paise: 100, Buyer: "b", MadeAt: tx.Now,
		MovedAt: tx.Now, OrderDoc: storage.OrderDoc{Handle: "asha", Lines: []protocol.OrderLine{}, Totals: []protocol.OrderTotal{}, Way: "pickup", Pay: "now",
			Events: []protocol.OrderEvent{}}}
	o.Mailbox[0], o.TokenHash = byte(n), protocol.SecretHash(o.ID)
	o.Sealed = w.houses[0].Money.Seal.Seal("order "+o.ID, []byte("{}"))
	return tx.Orders().Insert(ctx, o)
}

// bidOn bids on asha's board as an agent; the owner confirms the payment and removes the bid, so that
// there is a bid, a payment and a refund more.
func (w *walkWorld) bidOn(h *nodetest.House, a *nodetest.Agent) int {
	made := askAs(a, h, "POST", "/api/public/agents/asha/attention/bids", `{"amount":500,"message":"Yarn."}`)
	if made.Status != 201 {
		return made.Status
	}
	path := "/api/owner/bids/" + bidID.FindString(string(made.Raw))
	asha := []string{"Authorization", "Bearer " + w.tokens["asha"]}
	if code := h.Ask("POST", path+"/confirm", fmt.Sprintf(`{"utr":%q}`, nodetest.NewUTR()), asha...).Code; code != 200 {
		return code
	}
	return h.Ask("POST", path+"/remove", `{"reason":"No yarn."}`, asha...).Code
}

var bidID = regexp.MustCompile(`bid_[0-9a-z]{26}`)

// begin begins a thread as an agent, with an address for the replies.
func (w *walkWorld) begin(h *nodetest.House, a *nodetest.Agent, handle string, i int) string {
	w.t.Helper()
	answer := askAs(a, h, "POST", "/api/public/agents/"+handle+"/contact", fmt.Sprintf(`{"message":"Hello %d","callbackUrl":"https://127.0.0.1:1/hook"}`, i))
	require.Equal(w.t, 201, answer.Status, "%s", answer.Raw)
	return nodetest.TypeID.FindString(string(answer.Raw))
}

// profile puts a person or a business with a record.
func (w *walkWorld) profile(h *nodetest.House, handle string, person bool) int {
	kind := protocol.Business
	if person {
		kind = protocol.Person
	}
	_, _, err := h.Admin().PutProfile(context.Background(), nodetest.Encoded(protocol.ProfileDraft{Handle: handle, Name: handle, Kind: kind}))
	if err == nil && !person {
		_, err = h.Admin().PutMerchant(context.Background(), handle, []byte(`{"category":"food","items":[{"sku":"tea","name":"Tea"}]}`))
	}
	return statusOf(err)
}

// operate does an operator's operation.
func (w *walkWorld) operate(h *nodetest.House, op *protocol.Operation, in any) int {
	_, err := h.Table.Invoke(context.Background(),
		hall.Request{Op: op.Name, Args: nodetest.Encoded(in), Door: "test", Evidence: identity.Evidence{Operator: true}})
	return statusOf(err)
}

func statusOf(err error) int {
	if err == nil {
		return 200
	}
	return protocol.CodeOf(err).Status()
}

// ask sends a signed request to a house that need not be the agent's own.
func askAs(a *nodetest.Agent, h *nodetest.House, method, path, body string) nodetest.A2AAnswer {
	r, err := http.NewRequest(method, h.Base+path, bytes.NewReader([]byte(body)))
	require.NoError(h.T, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := (&nodetest.Agent{H: h, ID: a.ID, Pair: a.Pair}).RoundTrip(r)
	require.NoError(h.T, err)
	defer res.Body.Close()
	var raw bytes.Buffer
	_, err = raw.ReadFrom(res.Body)
	require.NoError(h.T, err)
	return nodetest.A2AAnswer{Status: res.StatusCode, Raw: raw.Bytes()}
}

func sendAs(a *nodetest.Agent, h *nodetest.House, method, path, body string) int {
	return askAs(a, h, method, path, body).Status
}
