package node

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/attest"
	"stoa/node/door/httpapi"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// A provable is a kind of object that has a proof document. The operation decides who may read the object, and counts the read; prove makes
// the document for whom it answered.
type provable struct {
	addresses []string // of the document
	op        *protocol.Operation
	args      func(*http.Request) any
	prove     func(ctx context.Context, r *http.Request, shown hall.Result) ([]byte, error)
}

func noArgs(*http.Request) any { return struct{}{} }

// newest asks for one line, where only the permission to read the list is needed.
func newest(*http.Request) any { return protocol.Paging{Limit: 1} }

// handleOf is the agent that a path names, by its handle, or as /@handle.
func handleOf(r *http.Request) any {
	handle := r.PathValue("handle")
	if at := r.PathValue("at"); strings.HasPrefix(at, "@") {
		handle = at
	}
	return protocol.HandleInput{Handle: protocol.CleanHandle(handle)}
}

// provables are the kinds of objects that have a proof document (docs/PROOF.md).
func (n *Node) provables() []provable {
	return []provable{
		{
			[]string{"/board/:id/proof", "/api/public/board/:id/proof"}, protocol.GetBoardPost.Operation,
			func(r *http.Request) any {
				return map[string]any{"id": r.PathValue("id"), "limit": 1}
			},
			func(ctx context.Context, r *http.Request, _ hall.Result) ([]byte, error) {
				return n.prover.Post(ctx, n.front.network(r), r.PathValue("id"))
			},
		},
		{[]string{"/board/proof"}, protocol.ReadBoard.Operation, newest, n.logProof},
		{
			[]string{"/:at/proof", "/api/public/agents/:handle/proof"}, protocol.GetAgentProfile.Operation, handleOf,
			func(ctx context.Context, r *http.Request, shown hall.Result) ([]byte, error) {
				return n.prover.Profile(ctx, n.front.network(r), shown.Value.(protocol.Profile))
			},
		},
		{[]string{"/api/public/agents/:handle/attention/bids/:id/proof"}, protocol.ReadAttentionBoard.Operation, handleOf, n.bidProof},
		{
			[]string{"/api/public/agents/:handle/reviews/:id/proof"}, protocol.ListReviews.Operation,
			func(r *http.Request) any {
				return protocol.FeedbackQuery{HandleInput: handleOf(r).(protocol.HandleInput), Paging: protocol.Paging{Limit: 1}}
			},
			n.reviewProof,
		},
		{
			[]string{"/api/public/order-receipts/:id/proof"}, protocol.GetReceiptStatus.Operation,
			func(r *http.Request) any { return protocol.ReceiptRef{ID: r.PathValue("id")} },
			func(_ context.Context, r *http.Request, shown hall.Result) ([]byte, error) {
				return n.said(attest.KindReceipt, "/api/public/order-receipts/"+r.PathValue("id"), shown.Value, time.Time{})
			},
		},
		{[]string{"/api/public/moderation-log/:id/proof"}, protocol.ReadModerationLog.Operation, newest, n.decisionProof},
		{[]string{"/.well-known/agent-card.json/proof"}, protocol.AboutService.Operation, noArgs, n.cardProof},
		{[]string{"/a2a/:handle/agent-card.json/proof"}, protocol.GetAgentProfile.Operation, handleOf, n.cardProof},
	}
}

// said is the document of something that no author has signed. Its address is its id.
func (n *Node) said(kind, path string, shown any, at time.Time) ([]byte, error) {
	object, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	return n.prover.Object(kind, n.Base+path, n.Base+path, object, at)
}

func (n *Node) bidProof(ctx context.Context, r *http.Request, shown hall.Result) ([]byte, error) {
	board := shown.Value.(protocol.AttentionBoard)
	for _, b := range board.Bids {
		if b.ID == r.PathValue("id") && b.Message != nil {
			return n.prover.Bid(ctx, n.front.network(r), board.Handle, b)
		}
	}
	return nil, protocol.Errorf(protocol.NotFound, "the board of @%s shows no live bid with that id and its text", board.Handle)
}

func (n *Node) reviewProof(ctx context.Context, r *http.Request, _ hall.Result) ([]byte, error) {
	handle, id := protocol.CleanHandle(r.PathValue("handle")), r.PathValue("id")
	var review protocol.Review
	err := n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		review, err = n.Reputation.Review(ctx, tx, handle, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return n.said(attest.KindReview, "/api/public/agents/"+handle+"/reviews/"+id, review, review.At)
}

func (n *Node) decisionProof(ctx context.Context, r *http.Request, _ hall.Result) ([]byte, error) {
	var e protocol.ModerationEntry
	err := n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		e, err = tx.Moderation().LogEntry(ctx, r.PathValue("id"))
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "the moderation log has no line with that id"))
	}
	return n.said(attest.KindDecision, "/api/public/moderation-log/"+e.ID, e, e.At)
}

func (n *Node) cardProof(ctx context.Context, r *http.Request, _ hall.Result) ([]byte, error) {
	handle, path := protocol.CleanHandle(r.PathValue("handle")), "/.well-known/agent-card.json"
	if handle != "" {
		path = "/a2a/" + handle + "/agent-card.json"
	}
	card, modified, err := n.cards(ctx, handle, n.front.network(r))
	if err != nil {
		return nil, err
	}
	return n.said(attest.KindCard, path, json.RawMessage(card), modified)
}

func (n *Node) logProof(ctx context.Context, _ *http.Request, _ hall.Result) ([]byte, error) {
	var head attest.Head
	err := n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		head, err = n.federation.LogHead(ctx, tx)
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "the board's log has no entries yet"))
	}
	object, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return n.prover.Object(attest.KindLog, protocol.BoardID(n.Base), n.Base+"/board", object, time.Time{})
}

// proof serves the proof documents of a kind of object to whom the object itself is shown.
func (n *Node) proof(p provable) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		args, err := json.Marshal(p.args(r))
		var shown hall.Result
		var body []byte
		if err == nil {
			shown, err = n.Table.Invoke(r.Context(), hall.Request{
				Op: p.op.Name, Args: args, Door: "proof", Evidence: identity.Evidence{Network: n.front.network(r)}, ID: w.Header().Get(httpapi.RequestIDHeader),
			})
		}
		if err == nil {
			body, err = p.prove(r.Context(), r, shown)
		}
		head := w.Header()
		head.Set("Access-Control-Allow-Origin", "*")
		head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
		if err != nil {
			httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err)
			return
		}
		head.Set("Cache-Control", "public, max-age=60")
		netx.Serve(w, r, attest.MediaType, body)
	})
}
