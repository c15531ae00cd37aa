package web_test

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// troubled gives the operators' pages something to show: a reported post, which it returns, one that another server reported, a
// peer that is down, and a dead job.
func troubled(h *nodetest.House) (reported protocol.Post) {
	h.T.Helper()
	reported = h.Post("Win a phone today")
	h.Report("203.0.113.7", reported.ID)
	flagged := h.Post("Cheap watches")
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		if err := h.Moderation.FlagFrom(ctx, tx, flagged.ID, "n2.example", "advertising"); err != nil {
			return err
		}
		if err := tx.Subscriptions().Put(ctx, storage.Subscription{Board: "https://n2.example/ap/board", Host: "n2.example",
			State:   storage.SubscriptionAccepted,
			LastSeq: 41, Head: 44, CheckedAt: tx.Now, NextAt: tx.Now.Add(6 * time.Hour), Failures: 3, LastError: "dial tcp: connection refused"}); err != nil {
			return err
		}
		return tx.Outlets().Put(ctx, storage.Outlet{Board: protocol.BoardID(h.Base), Inbox: "https://n2.example/ap/inbox", Host: "n2.example", Stoa: true})
	}))
	require.NoError(h.T, h.DB.FailOutlet(h.T.Context(), protocol.BoardID(h.Base), "https://n2.example/ap/inbox", time.Hour,
		"n2.example answered 502", storage.OutletSlow))
	h.Dead("mail.example.org: no such host", storage.MailJob)
	require.NoError(h.T, h.Meter.Flush(h.T.Context()))
	return reported
}

// TestOperatorPages does an operator's morning in a real browser: decides about a post and undoes it, blocks a network and lifts
// that, tries a peer and a job again.
func TestOperatorPages(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	b := nodetest.OpenBrowser(t, h.Base)
	said := listen(b)
	p := troubled(h)
	signedIn(b, h.SignInOperator())
	press := func(selector string) {
		t.Helper()
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(selector))), b.Text("main"))
	}
	post := func() int { return h.Ask("GET", "/api/public/board/"+p.ID, "").Code }

	require.Equal(t, 200, b.Open("/account"))
	press(`main .index a[href="/account/node"]`)
	require.Contains(t, b.Text("main"), "2 waiting")
	require.Contains(t, b.Text("main"), "1 given up")
	press(`main .index a[href="/account/node/queue"]`)
	card := "#" + p.ID
	require.Contains(t, b.Text(card), "Win a phone today")
	require.Contains(t, b.Text(card), "spam")
	require.Contains(t, b.Text("main"), "by the server n2.example")
	press(card + ` button[value="hide_post"]`)
	require.Equal(t, 410, post())
	require.Equal(t, "The post is hidden.", b.Text(".done p"))
	require.Empty(t, b.Text(card))
	press(".done button")
	require.Equal(t, 200, post())
	require.Equal(t, "The post is visible.", b.Text(".done p"))

	press(`a[href="/account/node/queue?state=hidden"]`)
	require.Equal(t, 200, b.Open("/account/node/queue"))
	h.Report("203.0.113.9", p.ID)
	require.Equal(t, 200, b.Open("/account/node/queue"))
	press(card + ` button[value="hide_post"]`)
	require.Equal(t, 410, post(), "the second time too")
	press(".done button")
	require.Equal(t, 200, post())

	h.Report("203.0.113.8", p.ID)
	h.Report("203.0.113.10", p.ID)
	press(`a[href="/account/node/queue?cause=reports"]`)
	require.NotContains(t, b.Text("main"), "Cheap watches")
	press(card + ` button[value="dismiss_reports"]`)
	require.Contains(t, nodetest.Look[string](b, "location.search"), "cause=reports")
	require.Empty(t, b.Text(card))
	press(".done button")
	require.Contains(t, b.Text(card), "Reports that count: 2 of 5")
	require.Equal(t, 200, b.Send(card+` form:has([value="add_moderation_note"])`, "text", "Asked the author."))
	require.Contains(t, b.Text(card), "Note: Asked the author.")
	require.Equal(t, 422, b.Send(card+` form:has([value="add_moderation_note"])`, "text", " "))
	require.Contains(t, b.Text(".alert"), "Nothing was done.")
	require.Equal(t, 200, b.Send(card+` form:has([value="add_node_block"])`, "reason", "advertising", "hours", "24"))
	require.Equal(t, "The block is in force.", b.Text(".done p"))
	press(".done button")
	require.Equal(t, "The block is lifted.", b.Text(".done p"))
	require.Equal(t, 200, b.Send(card+` form:has([value="remove_post"])`, "reason", "fraud"))
	require.Equal(t, 410, post())
	require.Equal(t, "The post is deleted for good.", b.Text(".done p"))
	require.Empty(t, b.Text(".done button"))

	write := func() int {
		return h.From("203.0.113.7", "POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Code
	}
	require.Equal(t, 200, b.Open("/account/node/blocks"))
	require.Equal(t, 422, b.Send("#block", "value", "203.0.113.0/24"))
	require.Equal(t, "203.0.113.0/24", value(b, "#block-value"))
	require.NotEmpty(t, b.Text("#n-block-value"))
	require.Equal(t, 200, b.Send("#block", "kind", "network", "value", "203.0.113.7", "reason", "spam", "hours", "24"))
	require.Equal(t, 403, write())
	require.Contains(t, b.Text(".rows"), "Reason: spam")
	press(".rows button")
	require.Equal(t, 201, write())
	require.Contains(t, b.Text("main"), "Nobody is blocked.")
	require.Equal(t, 200, b.Send(`form:has([value="set_limits"])`, "writeRate", "2.5"))
	require.Equal(t, "2.5", value(b, "#limits-writeRate"))
	press(".done button")
	require.NotEqual(t, "2.5", value(b, "#limits-writeRate"))

	require.Equal(t, 200, b.Open("/account/node/peers"))
	require.Contains(t, b.Text("main"), "No server listens there.")
	require.Contains(t, b.Text("main"), "It answers with an error of its own.")
	require.Contains(t, b.Text("main"), "n2.example answered 502")
	press(`#following ~ ul form:has([value="retry_peer"]) button`)
	var v protocol.PeersView
	h.Operator().Do(200, "GET", "/api/operator/peers", nil, &v)
	require.WithinDuration(t, time.Now(), *v.Following[0].NextAt, time.Minute)
	require.Equal(t, 200, b.Send(`form:has(#follow-url)`, "url", "https://n3.example"))
	require.Contains(t, b.Text("main"), "n3.example")
	press(".done button")
	require.NotContains(t, b.Text(".rows"), "n3.example")

	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Logs().Report(ctx, storage.Conflict{Board: "n4.example", Kind: storage.ConflictFallback, Epoch: "e", Seq: 7}); err != nil {
			return err
		}
		return nodetest.ConflictOf("https://n2.example/ap/board")(ctx, tx)
	}))
	require.Equal(t, 200, b.Open("/account/node/health"))
	require.Contains(t, b.Text("main"), "Followed logs that contradict themselves: 1")
	require.Contains(t, b.Text("main"), "Nodes that report that our log contradicts itself: 1")
	var evidence protocol.ConflictEvidence
	h.Operator().Do(200, "GET", "/api/operator/peers/conflict?url=https://n2.example/ap/board", nil, &evidence)
	require.Equal(t, []any{"fork", int64(3), `{"a":1}`, `{"a":2}`},
		[]any{evidence.Conflict.Kind, evidence.Conflict.Seq, evidence.OursDocument, evidence.TheirsDocument})
	require.Equal(t, 200, b.Open("/account/node/peers"))
	require.Contains(t, b.Text("main"), "Its log contradicts entry 3, which was taken.")
	require.Contains(t, b.Text("main"), "n4.example reports that our log contradicts entry 7.")
	press(`form:has([value="reread_peer"]) button`)
	require.NotContains(t, b.Text("main"), "Its log contradicts")
	h.Operator().Do(404, "GET", "/api/operator/peers/conflict?url=https://n2.example/ap/board", nil, nil)

	require.Equal(t, 200, b.Open("/account/node/health"))
	require.Contains(t, b.Text("main"), "Jobs were given up: 1")
	require.Contains(t, b.Text("main"), "No backup is known")
	press(`main a[href="/account/node/jobs"].button`)
	require.Contains(t, b.Text(".rows"), "no such host")
	press(`form:has([value="requeue_job"]) button`)
	require.Contains(t, b.Text("main"), "No job was given up.")
	require.Equal(t, 200, b.Open("/account/node/numbers"))
	require.Contains(t, nodetest.Look[string](b, `document.querySelector("#day ~ .charts svg desc").textContent`), "in all")
	require.Equal(t, 12, nodetest.Look[int](b, `document.querySelectorAll("svg.chart").length`))
	require.Equal(t, 200, b.Open("/account/node/audit"))
	require.Contains(t, b.Text(".feed"), "job requeue")
	require.Equal(t, 200, b.Send("main form.filters", "action", "post hide"))
	require.Contains(t, b.Text(".feed"), "Kiran")
	require.NotContains(t, b.Text(".feed"), "job requeue")
	require.Empty(t, said.take())

	// Owners without the right see no link and no page; others are asked to sign in.
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "")
	owner := h.SignIn(link)
	for _, path := range []string{"", "/queue", "/reviews", "/peers", "/blocks", "/health", "/jobs", "/numbers", "/audit"} {
		a := h.Ask("GET", "/account/node"+path, "", "Accept", "text/html", "Cookie", "stoa_session="+owner)
		require.Equal(t, 403, a.Code, path)
		require.NotContains(t, a.Body.String(), "n2.example")
		require.Equal(t, 303, h.Ask("GET", "/account/node"+path, "", "Accept", "text/html").Code, path)
	}
	require.NotContains(t, h.Ask("GET", "/account", "", "Accept", "text/html", "Cookie", "stoa_session="+owner).Body.String(), "/account/node")
	h.Ask("POST", "/account/node/queue", "do=hide_post&id="+p.ID, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
		"Sec-Fetch-Site", "same-origin", "Origin", h.Base, "Cookie", "stoa_session="+owner).Is(403)
	for query, code := range map[string]int{"?state=lost": 422, "?colour=red": 422, "?after=x": 400, "?state=hidden&cause=flags": 200} {
		a := h.Ask("GET", "/account/node/queue"+query, "", "Accept", "text/html", "Cookie", "stoa_session="+h.SignInOperator())
		require.Equal(t, code, a.Code, query)
	}
	h.Ask("GET", "/account/node/health?x=y", "", "Accept", "text/html", "Cookie", "stoa_session="+h.SignInOperator()).Is(422)
}
