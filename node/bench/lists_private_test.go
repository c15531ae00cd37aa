package bench_test

import (
	"context"
	"net/url"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest/fill"
)

// listKeys are what opens the lists of a filled node that are not for everyone,
// and some of the things in them.
type listKeys struct {
	owner, operator, thread string // bearer tokens: the busy owner's, an operator's, a thread's
	threadID, answered      string // of the busy owner
	post                    string // with a note
}

// listKeys makes tokens for the busy owner of a filled node and for an operator.
func (h *asker) listKeys() (k listKeys) {
	h.T.Helper()
	t := h.T
	k.owner, k.thread = h.OwnerToken(fill.Handle(0)), fill.ReadToken(0)
	acc, _ := h.OpenAccount("Operator", protocol.RoleOperator, "")
	k.operator = h.AccountToken(acc.ID, "lists", protocol.ScopeOperator, protocol.ScopeAccount)
	require.NoError(t, h.DB.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		id, err := tx.Threads().IDByToken(ctx, protocol.SecretHash(k.thread))
		require.NoError(t, err)
		k.threadID = id
		calls, err := tx.Callbacks().List(ctx, fill.Handle(0), "", "", 1, "")
		require.NoError(t, err)
		k.answered = calls.Items[0].ThreadID
		notes, err := tx.Moderation().ListNotes(ctx, protocol.NoteQuery{Paging: protocol.Paging{Limit: 1}})
		require.NoError(t, err)
		k.post = notes.Items[0].Subject
		return nil
	}))
	return k
}

// privateListings are the lists of owners and operators, and of returning readers.
func privateListings(k listKeys) []listing {
	of := axis{"handle", []string{fill.Handle(0)}}
	return []listing{
		{op: protocol.ListThreads.Operation, bearer: k.owner, axes: []axis{of, {"state", []string{"open", "answered", "closed"}}}},
		{op: protocol.GetThread.Operation, bearer: k.owner, axes: []axis{{"threadId", []string{k.threadID, k.answered}}}},
		{op: protocol.ListCallbacks.Operation, bearer: k.owner, axes: []axis{of, {"state", []string{"done", "failed", "waiting"}},
			{"threadId", []string{k.answered}}}},
		{op: protocol.ListBlockedWriters.Operation, bearer: k.owner, axes: []axis{of}},
		{op: protocol.ListFollowers.Operation, bearer: k.owner, axes: []axis{of}},
		{op: protocol.ListOrderReceipts.Operation, bearer: k.owner, axes: []axis{of, {"order", []string{"R-1"}}}},
		{op: protocol.ListOwnPosts.Operation, bearer: k.owner, axes: []axis{of}},
		{op: protocol.ListTokens.Operation, bearer: k.owner},
		{op: protocol.ListSessions.Operation, bearer: k.owner},
		{op: protocol.WhatsNew.Operation, bearer: k.owner},
		{op: protocol.WhatsNew.Operation, bearer: k.thread},
		{op: protocol.CheckConversation.Operation, bearer: k.thread, axes: []axis{{"threadId", []string{k.threadID}}}},
		{op: protocol.ListReviewQueue.Operation, bearer: k.operator, axes: []axis{{"state", []string{"reported", "hidden"}}}},
		{op: protocol.ListHiddenReviews.Operation, bearer: k.operator},
		{op: protocol.ListNotes.Operation, bearer: k.operator, axes: []axis{{"subject", []string{k.post, "absent"}}}},
		{op: protocol.ListBlocks.Operation, bearer: k.operator, axes: []axis{{"kind", []string{"network", "host", "key"}}}},
		{op: protocol.ReadAudit.Operation, bearer: k.operator},
		{op: protocol.ListAccounts.Operation, bearer: k.operator},
		{op: protocol.ReadModerationLog.Operation},
	}
}

// counts are what a node counts of itself, and the searches that take JSON.
func counts(k listKeys) (all []question) {
	get := func(op *protocol.Operation, bearer string) {
		all = append(all, question{op: op, query: url.Values{}, bearer: bearer})
	}
	get(protocol.ReadStatistics.Operation, k.operator)
	get(protocol.AboutService.Operation, "")
	for name, path := range map[string]string{"home page": "/", "nodeinfo": "/nodeinfo/2.1"} {
		get(&protocol.Operation{Name: name, HTTP: protocol.Route{Method: "GET", Path: path}}, "")
	}
	post := func(op *protocol.Operation, bodies ...string) {
		for _, body := range bodies {
			all = append(all, question{op: op, query: url.Values{}, body: body})
		}
	}
	texts := []string{frequent, middling, rare, frequent + " " + fill.Word(1), "somebody who can " + middling + " in the absent evening"}
	post(protocol.ExploreARD.Operation, `{"resultType":{"facets":[{"field":"tags"}]}}`,
		`{"query":{"filter":{"metadata.kind":["person"]}},"resultType":{"facets":[{"field":"capabilities"}]}}`)
	for _, filter := range []string{``, `,"filter":{"metadata.kind":["business"]}`, `,"filter":{"tags":["` + fill.Tag(60) + `"],"metadata.regions":["IN"]}`} {
		for _, text := range texts {
			post(protocol.SearchARD.Operation, `{"query":{"text":"`+text+`"`+filter+`}}`)
		}
		for _, text := range texts {
			post(protocol.ExploreARD.Operation,
				`{"query":{"text":"`+text+`"`+filter+`},"resultType":{"facets":[{"field":"tags"},{"field":"metadata.kind"},{"field":"metadata.regions","limit":100}]}}`)
		}
	}
	return all
}
