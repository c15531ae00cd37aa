package node_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestOperator_Jobs lists, retries and deletes jobs over HTTP as stoa admin does.
func TestOperator_Jobs(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		ids := h.Dead("no such host", storage.MailJob, storage.WebhookJob, storage.CallbackJob)
		list := func(query string) (items []protocol.Job) {
			t.Helper()
			for next := ""; ; {
				var page protocol.Page[protocol.Job]
				o.Do(200, "GET", "/api/operator/jobs?limit=2"+query+next, nil, &page)
				items = append(items, page.Items...)
				if page.Next == nil {
					return items
				}
				next = "&after=" + *page.Next
			}
		}
		all := list("")
		require.Len(t, all, 3)
		require.Equal(t, ids[2], all[0].ID, "the newest first")
		require.Equal(t, []any{"dead", "no such host", true}, []any{all[0].State, all[0].LastError, all[0].Untrusted})
		require.NotNil(t, all[0].DoneAt)
		require.Len(t, list("&kind=notice-mail"), 1)
		require.Empty(t, list("&kind=nothing"))

		o.Do(204, "POST", fmt.Sprint("/api/operator/jobs/", ids[0], "/requeue"), nil, nil)
		require.Len(t, list("&state=waiting&kind=notice-mail"), 1)
		o.Do(404, "POST", fmt.Sprint("/api/operator/jobs/", ids[0], "/requeue"), nil, nil)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Enqueue(ctx, storage.Job{Kind: storage.CallbackJob, Dedupe: "test callback"})
		}))
		o.Do(409, "POST", fmt.Sprint("/api/operator/jobs/", ids[2], "/requeue"), nil, nil)
		o.Do(204, "DELETE", fmt.Sprint("/api/operator/jobs/", ids[1]), nil, nil)
		o.Do(404, "DELETE", fmt.Sprint("/api/operator/jobs/", ids[1]), nil, nil)
		for _, bad := range []string{"0", "-1", "x", "1.5", "9223372036854775808"} {
			o.Do(422, "DELETE", "/api/operator/jobs/"+bad, nil, nil)
		}
		o.Do(400, "GET", "/api/operator/jobs?kind=callback&after=x", nil, nil)
		var audit protocol.Page[protocol.AuditEntry]
		o.Do(200, "GET", "/api/operator/audit?limit=2", nil, &audit)
		require.Equal(t, []string{"job drop", "notice-webhook: no such host"}, []string{audit.Items[0].Action, audit.Items[0].Detail})
		require.Equal(t, []string{"job requeue", fmt.Sprint(ids[0]), o.Account}, []string{audit.Items[1].Action, audit.Items[1].Subject, audit.Items[1].Actor})

		// More than one page of those that wait, in the order in which they are due.
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for i := range 5 {
				if err := tx.Enqueue(ctx, storage.Job{Kind: storage.SilenceJob, RunAt: tx.Now.Add(time.Duration(5-i/2) * time.Hour)}); err != nil {
					return err
				}
			}
			return nil
		}))
		due := list("&state=waiting&kind=silence")
		require.Len(t, due, 5)
		for i := range due[1:] {
			require.False(t, due[i+1].RunAt.Before(due[i].RunAt))
		}
	})
}

// TestOperator_Peers follows, retries and stops following over HTTP, and hurries what fails.
func TestOperator_Peers(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		const nobody, board, inbox = "http://127.0.0.1:1", "https://n2.example/ap/board", "https://n2.example/ap/inbox"
		view := func() (v protocol.PeersView) { o.Do(200, "GET", "/api/operator/peers", nil, &v); return v }
		post := func(status int, what, address string) {
			t.Helper()
			o.Do(status, "POST", "/api/operator/peers/"+what, map[string]string{"url": address}, nil)
		}
		post(204, "follow", nobody)
		require.Equal(t, "pending", view().Following[0].State)
		post(204, "retry", nobody)
		require.Len(t, view().Following, 1)
		post(204, "unfollow", nobody)
		require.Empty(t, view().Following)
		post(404, "unfollow", nobody)
		post(404, "retry", nobody)
		post(400, "follow", "not an address")
		post(422, "follow", "")

		later := time.Now().Add(6 * time.Hour)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Subscriptions().Put(ctx, storage.Subscription{Board: board, Host: "n2.example", State: storage.SubscriptionAccepted,
				LastSeq: 41, Head: 44, CheckedAt: tx.Now, NextAt: later, Failures: 3, LastError: "connection refused"}); err != nil {
				return err
			}
			return tx.Outlets().Put(ctx, storage.Outlet{Board: protocol.BoardID(h.Base), Inbox: inbox, Host: "n2.example", Stoa: true})
		}))
		h.Post("Lamps")
		require.Eventually(t, func() bool { return view().Head == 1 }, time.Minute, 20*time.Millisecond)
		require.NoError(t, h.DB.FailOutlet(t.Context(), protocol.BoardID(h.Base), inbox, 6*time.Hour, "n2.example answered 502", storage.OutletSlow))
		v := view()
		require.Equal(t, "connection refused", v.Following[0].LastError)
		require.NotNil(t, v.Following[0].CheckedAt)
		require.Equal(t, int64(3), v.Following[0].Behind)
		d := v.Delivering[0]
		require.Equal(t, []any{"slow", int64(1), "n2.example answered 502", true}, []any{d.State, d.Behind, d.LastError, d.Stoa})
		require.Nil(t, d.LastAt)
		require.WithinDuration(t, later, *d.NextAt, time.Minute)
		post(204, "retry", board)
		post(204, "retry", inbox)
		v = view()
		require.WithinDuration(t, time.Now(), *v.Following[0].NextAt, time.Minute)
		require.Nil(t, v.Delivering[0].NextAt)
		o.Do(204, "PUT", "/api/operator/peers/policy", map[string]string{"host": "n2.example", "policy": "trusted"}, nil)
		require.Equal(t, "trusted", view().Policies[0].Policy)
		o.Do(204, "PUT", "/api/operator/peers/policy", map[string]string{"host": "n2.example", "policy": "none"}, nil)
		require.Empty(t, view().Policies)
	})
}

// TestOperator_Traffic counts what was done, hour by hour, over processes and restarts.
func TestOperator_Traffic(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		two := h.Second(change)
		o := h.Operator()
		traffic := func(span string) (v protocol.Traffic) {
			o.Do(200, "GET", "/api/operator/traffic"+span, nil, &v)
			return v
		}
		require.Len(t, traffic("").Steps, 24)
		require.Len(t, traffic("?span=month").Steps, 30)
		p := h.Post("Lamps")
		h.Report("203.0.113.1", p.ID)
		require.Equal(t, 404, h.Ask("GET", "/api/public/agents/nobody", "").Code)
		require.Equal(t, 200, two.Ask("GET", "/api/public/board", "").Code)
		h.Federated("delivery", "n2.example", nil)
		h.Federated("delivery", "n2.example", context.Canceled)
		h.Federated("pull", "n2.example", nil)
		require.NoError(t, h.Meter.Flush(t.Context()))
		require.NoError(t, two.Meter.Flush(t.Context()))
		require.NoError(t, two.Meter.Flush(t.Context()), "nothing more")
		for _, span := range []string{"?span=day", "?span=month"} {
			var sum protocol.TrafficStep
			for _, s := range traffic(span).Steps {
				sum.Reads += s.Reads
				sum.Writes += s.Writes
				sum.Proofs += s.Proofs
				sum.Reports += s.Reports
				sum.Deliveries += s.Deliveries
				sum.Failures += s.Failures
			}
			require.Equal(t, protocol.TrafficStep{Reads: sum.Reads, Writes: 2, Proofs: 2, Reports: 1, Deliveries: 1, Failures: 1}, sum, span)
			require.GreaterOrEqual(t, sum.Reads, int64(1))
		}
		o.Do(422, "GET", "/api/operator/traffic?span=year", nil, nil)
	})
}

// TestOperator_Health says what is wrong and how full the node is.
func TestOperator_Health(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		h.Dead("no such host", storage.MailJob, storage.RefundJob)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for _, j := range []storage.Job{{Kind: storage.MailJob, LastError: "greylisted", RunAt: tx.Now.Add(time.Hour)}, {Kind: storage.MailJob}} {
				if err := tx.Enqueue(ctx, j); err != nil {
					return err
				}
			}
			return nil
		}))
		var v protocol.Health
		o.Do(200, "GET", "/api/operator/health", nil, &v)
		require.Equal(t, h.DB.Engine(), v.Engine)
		require.Greater(t, v.Bytes, int64(1000))
		require.WithinDuration(t, time.Now(), v.StartedAt, 10*time.Minute)
		require.Nil(t, v.BackupAt)
		require.Len(t, v.Stocks, len(storage.Caps))
		require.NotZero(t, v.Stocks[0].MaxRows)
		require.Equal(t, protocol.MailHealth{State: "log", Waiting: 2, Retrying: 1, Dead: 1, LastError: "greylisted"}, v.Mail)
		require.Equal(t, protocol.PayHealth{Dead: 1, LastError: "no such host"}, v.Payments)
		for _, j := range v.Jobs {
			if j.Kind == "notice-mail" {
				require.Equal(t, []int{1, 1, 1, 1}, []int{j.Due, j.Sleeping, j.Retrying, j.Dead})
				require.NotNil(t, j.DueAt)
			}
		}
		require.True(t, v.Untrusted)
		require.Empty(t, v.Chains)
		require.NoError(t, h.Admin().Backup(t.Context(), h.Config, t.TempDir()+"/copy", nil))
		o.Do(200, "GET", "/api/operator/health", nil, &v)
		require.WithinDuration(t, time.Now(), *v.BackupAt, time.Minute)
	})
}

// TestOperator_Audit is read by who did something, and by what was done.
func TestOperator_Audit(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		for range 3 {
			o.Do(201, "POST", "/api/operator/notes", map[string]string{"subject": "asha", "text": "friendly"}, nil)
		}
		o.Do(204, "POST", "/api/operator/peers/follow", map[string]string{"url": "https://n1.example"}, nil)
		count := func(query string) (n int) {
			for next := ""; ; {
				var page protocol.Page[protocol.AuditEntry]
				o.Do(200, "GET", "/api/operator/audit?limit=2"+query+next, nil, &page)
				n += len(page.Items)
				if page.Next == nil {
					return n
				}
				next = "&after=" + *page.Next
			}
		}
		require.Equal(t, 3, count("&action=note"))
		require.Equal(t, 4, count("&actor="+o.Account))
		require.Equal(t, 1, count("&action=peer+follow&actor="+o.Account))
		require.Zero(t, count("&action=peer+follow&actor=operator"))
	})
}
