package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// appeals is a house with a post of nobody, a post of asha and an operator.
type appeals struct {
	*nodetest.House
	operator  nodetest.Operator
	anonymous protocol.MadePost
	own       protocol.Post
	token     []string // of asha
}

func newAppeals(t *testing.T, change func(*node.Config)) *appeals {
	h := nodetest.New(t, change)
	w := &appeals{House: h, operator: h.Operator(), token: []string{"Authorization", h.Agent("asha", nodetest.OpenPolicy)}}
	h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Is(201).Into(&w.anonymous)
	h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Silk","body":"By the metre."}`, w.token...).Is(201).Into(&w.own)
	return w
}

func (w *appeals) hide(id string) {
	w.operator.Do(200, "POST", "/api/operator/posts/"+id+"/hide", map[string]any{"reason": "spam"}, nil)
}

// appeal sends one; what is more than the text is JSON members.
func (w *appeals) appeal(subject, more string, headers ...string) nodetest.Answer {
	if len(headers) == 0 {
		headers = []string{"Proof-Of-Work", w.Proof("report")}
	}
	return w.Ask("POST", "/api/public/complaints", `{"kind":"appeal","subject":"`+subject+`","text":"It is no spam."`+more+`}`, headers...)
}

// TestAppeal_Post: the author of a hidden post appeals once for each time that it is hidden, nobody else does, and an operator grants it.
func TestAppeal_Post(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		w := newAppeals(t, change)
		secret := `,"deleteToken":"` + w.anonymous.DeleteToken + `"`
		stranger := []string{"Authorization", w.Agent("ravi", nodetest.OpenPolicy)}
		require.Equal(t, 409, w.appeal(w.anonymous.ID, secret).Code, "it is not hidden")
		w.hide(w.anonymous.ID)
		w.hide(w.own.ID)
		gone := w.Ask("GET", "/api/public/board/"+w.anonymous.ID, "").Is(410)
		require.Contains(t, gone.Body.String(), "this post is hidden: spam")

		for name, refused := range map[string]nodetest.Answer{
			"a stranger about the post of nobody":   w.appeal(w.anonymous.ID, ""),
			"a profile about the post of nobody":    w.appeal(w.anonymous.ID, "", stranger...),
			"a stranger about the post of a person": w.appeal(w.own.ID, ""),
			"another profile":                       w.appeal(w.own.ID, "", stranger...),
			"the secret of another post":            w.appeal(w.own.ID, secret),
			"a wrong secret":                        w.appeal(w.anonymous.ID, `,"deleteToken":"`+protocol.NewReadToken()+`"`),
			"no post":                               w.appeal(protocol.NewID(protocol.PostID, time.Now()), ""),
			"somebody else's profile":               w.appeal("@asha", "", stranger...),
		} {
			require.Contains(t, []int{401, 403, 404, 410}, refused.Code, "%s: %s", name, refused.Body)
		}
		require.Equal(t, 422, w.appeal("my post", "").Code)
		require.Equal(t, 409, w.appeal("@asha", "", w.token...).Code, "the profile is shown")

		first := nodetest.As[protocol.ComplaintReceipt](w.appeal(w.Base+"/board/"+w.anonymous.ID, secret).Is(201))
		require.Equal(t, w.anonymous.ID, first.Subject)
		require.Equal(t, 409, w.appeal(w.anonymous.ID, secret).Code, "once")
		second := nodetest.As[protocol.ComplaintReceipt](w.appeal(w.own.ID, "", w.token...).Is(201))
		at := func(id string) string { return "/api/public/complaints/" + id }
		require.Equal(t, 401, w.Ask("GET", at(second.ID), "").Code)
		require.Equal(t, 404, w.Ask("GET", at(second.ID), "", stranger...).Code)
		require.Equal(t, 404, w.Ask("GET", at(first.ID), "", w.token...).Code, "of a post of nobody")
		require.Equal(t, "received", string(nodetest.As[protocol.Complaint](w.Ask("GET", at(second.ID), "", w.token...).Is(200)).State))

		var queue protocol.Page[protocol.OperatorComplaint]
		w.operator.Do(200, "GET", "/api/operator/complaints", nil, &queue)
		require.Len(t, queue.Items, 2)
		require.Equal(t, "spam", queue.Items[0].Reason)
		answer := func(status int, id string, body map[string]any) {
			t.Helper()
			w.operator.Do(status, "POST", "/api/operator/complaints/"+id+"/answer", body, nil)
		}
		answer(422, first.ID, map[string]any{"grant": true})
		answer(200, first.ID, map[string]any{"answer": "You are right.", "grant": true})
		answer(200, second.ID, map[string]any{"answer": "It stays hidden.", "done": true})
		w.Ask("GET", "/api/public/board/"+w.anonymous.ID, "").Is(200)
		require.Equal(t, 410, w.Ask("GET", "/api/public/board/"+w.own.ID, "").Code)
		told := nodetest.As[protocol.Complaint](w.Ask("GET", at(first.ID), "", "Authorization", "Bearer "+first.ReadToken).Is(200))
		require.Equal(t, protocol.ComplaintResolved, told.State)
		require.Equal(t, "You are right.", *told.Answer)
		require.Equal(t, "It stays hidden.", *nodetest.As[protocol.Complaint](w.Ask("GET", at(second.ID), "", w.token...).Is(200)).Answer)

		w.hide(w.anonymous.ID)
		w.appeal(w.anonymous.ID, secret).Is(201)
		require.Equal(t, 409, w.appeal(w.own.ID, "", w.token...).Code, "an answer is no decision of its own")
		a := w.Ask("POST", "/api/public/complaints", `{"kind":"other","subject":"other","text":"Loud."}`, w.token...).Is(201)
		other := nodetest.As[protocol.ComplaintReceipt](a)
		answer(422, other.ID, map[string]any{"answer": "Yes.", "grant": true})
	})
}

// TestAppeal_Profile: the owner of a suspended profile reads why, appeals, is told of the answer, and the profile is shown again.
func TestAppeal_Profile(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		w := newAppeals(t, change)
		box := &nodetest.Postbox{}
		w.Accounts.Mail = box
		w.Work()
		require.NoError(t, w.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org", Confirmed: true,
				Events: []protocol.NoticeEvent{protocol.ThreadBegun}})
		}))
		w.operator.Do(204, "POST", "/api/operator/profiles/asha/suspend", map[string]any{"reason": "Sells what is forbidden"}, nil)
		require.Contains(t, box.Next(t, w.House).Text, "Sells what is forbidden")
		require.Equal(t, 403, w.Ask("POST", "/api/public/board", nodetest.GoodPost, w.token...).Code)

		made := nodetest.As[protocol.ComplaintReceipt](w.appeal("@Asha", "", w.token...).Is(201))
		require.Equal(t, "@asha", made.Subject)
		require.Equal(t, 409, w.appeal(w.Base+"/@asha", "", w.token...).Code, "once")
		require.Equal(t, 409, w.appeal(w.own.ID, "", w.token...).Code, "the post is hidden with the profile")
		w.operator.Do(200, "POST", "/api/operator/complaints/"+made.ID+"/answer", map[string]any{"answer": "We were wrong.", "grant": true}, nil)
		w.Ask("GET", "/api/public/agents/asha", "").Is(200)
		letters := box.Next(t, w.House).Text + box.Next(t, w.House).Text
		require.Contains(t, letters, "Your profile is shown again.")
		require.Contains(t, letters, "We were wrong.")
		require.Contains(t, letters, w.Base+"/complaints/"+made.ID)
		w.Ask("POST", "/api/public/board", strings.Replace(nodetest.GoodPost, `"title":"`, `"title":"Again: `, 1), w.token...).Is(201)
	})
}

// TestArchiveLink: an operator makes a link to an archive for who cannot sign in. It opens the archive of that profile until another account
// has the profile, and the audit log has each use.
func TestArchiveLink(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		w := newAppeals(t, change)
		acc, _ := w.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
		wide := []string{"Authorization", "Bearer " + w.AccountToken(w.operator.Account, "accounts", protocol.ScopeOperator, protocol.ScopeAccount)}
		w.Ask("POST", "/api/operator/profiles/nobody/archive-link", "{}", wide...).Is(404)
		link := nodetest.As[protocol.ArchiveLink](w.Ask("POST", "/api/operator/profiles/asha/archive-link", "{}", wide...).Is(201))
		require.Equal(t, 401, w.Ask("POST", "/api/operator/profiles/asha/archive-link", "{}", w.token...).Code)
		page := w.Ask("GET", strings.TrimPrefix(link.URL, w.Base), "", "Accept", nodetest.Accept).Is(200)
		require.Contains(t, page.Body.String(), "Download")
		_, ticket, _ := strings.Cut(link.URL, "ticket=")
		fetch := func(ticket string) nodetest.Answer {
			return w.Ask("POST", "/api/owner/archive", `{"ticket":"`+ticket+`"}`)
		}
		got := fetch(ticket).Is(200)
		require.Equal(t, "application/gzip", got.Header().Get("Content-Type"))
		require.Contains(t, got.Header().Get("Content-Disposition"), "asha.stoa.tar.gz")
		require.Equal(t, got.Body.Bytes()[:2], []byte{0x1f, 0x8b})
		w.Ask("POST", "/api/operator/profiles/asha/suspend", `{"reason":"spam"}`, wide...).Is(204)
		fetch(ticket).Is(200)
		for _, wrong := range []string{ticket[:len(ticket)-1], strings.Replace(ticket, "asha", "ravi", 1), protocol.ReadTokenPrefix + "asha.x.y"} {
			require.Equal(t, 410, fetch(wrong).Code)
		}
		var audit protocol.Page[protocol.AuditEntry]
		w.operator.Do(200, "GET", "/api/operator/audit?limit=10", nil, &audit)
		require.Equal(t, []string{"archive fetch", "profile suspend", "archive fetch", "archive link"},
			[]string{audit.Items[0].Action, audit.Items[1].Action, audit.Items[2].Action, audit.Items[3].Action})
		require.NoError(t, w.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Accounts().Delete(ctx, acc.ID) }))
		require.Equal(t, 410, fetch(ticket).Code, "nobody's account has the profile now")
	})
}
