package erc8004

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// replaced answers batches in which the calls are, by what edit makes of the right answers; other batches are answered as ever.
func replaced(s *stub, edit func(answers []map[string]any) any) {
	type request struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	s.answer = func(w http.ResponseWriter, body []byte) bool {
		var asked []request
		if json.Unmarshal(body, &asked) != nil || !slices.ContainsFunc(asked, func(a request) bool { return a.Method == "eth_call" }) {
			return false
		}
		var right []map[string]any
		for _, a := range asked {
			m := map[string]any{"jsonrpc": "2.0", "id": a.ID, "result": "0x7a69"}
			if a.Method == "eth_call" {
				m["result"], _ = s.call(a.Params)
			}
			right = append(right, m)
		}
		json.NewEncoder(w).Encode(edit(right))
		return true
	}
}

// What public endpoints do beside answering. A lookup then succeeds by another endpoint, the operator sees which one fails, and one without
// another endpoint is refused.
func TestHabits(t *testing.T) {
	t.Parallel()
	answer := func(f func(w http.ResponseWriter)) func(*stub) {
		return func(s *stub) { s.answer = func(w http.ResponseWriter, _ []byte) bool { f(w); return true } }
	}
	says := func(code int, text string) func(*stub) {
		return func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) { return nil, &stubError{Code: code, Message: text} }
		}
	}
	limit := func(after string) func(*stub) {
		return answer(func(w http.ResponseWriter) { w.Header().Set("Retry-After", after); w.WriteHeader(429) })
	}
	for name, c := range map[string]struct {
		habit func(*stub)
		fine  bool          // it is none that hurts
		pause time.Duration // of that endpoint
		quiet bool          // no fault of the endpoint
	}{
		"429":                          {habit: answer(func(w http.ResponseWriter) { w.WriteHeader(429) }), pause: time.Second},
		"429 with Retry-After":         {habit: limit("30"), pause: 30 * time.Second},
		"429 with a day":               {habit: limit("86400"), pause: maxPause},
		"429 with a date":              {habit: limit(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), pause: maxPause},
		"429 with a date that is over": {habit: limit("Mon, 02 Jan 2006 15:04:05 GMT"), pause: shortPause},
		"429 with nonsense":            {habit: limit("soon"), pause: shortPause},
		"503 with Retry-After": {habit: answer(func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
		}), pause: 7 * time.Second},
		"503":                    {habit: answer(func(w http.ResponseWriter) { w.WriteHeader(503) })},
		"limit of calls":         {habit: says(-32005, "daily request count exceeded, request rate limited"), pause: time.Second},
		"limit of compute units": {habit: says(429, "Your app has exceeded its compute units per second capacity"), pause: time.Second},
		"one error for the batch": {habit: answer(func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`)
		})},
		"the first three of a batch": {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { return a[:3] }) }},
		"pruned state":               {habit: says(-32000, "missing trie node 2fa1 (path )"), quiet: true},
		"no block hash":              {habit: says(-32602, "invalid argument 1: hex string without 0x prefix")},
		"no block hash, but numbers": {habit: func(s *stub) { byNumberOnly(s) }, fine: true},
		"no final block":             {habit: func(s *stub) { noFinal(s) }},
		"nothing":                    {habit: answer(func(http.ResponseWriter) {})},
		"null":                       {habit: answer(func(w http.ResponseWriter) { fmt.Fprint(w, "null") })},
		"HTML":                       {habit: answer(func(w http.ResponseWriter) { fmt.Fprint(w, "<!doctype html><title>Rate limited</title>") })},
		"answers in another order":   {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { slices.Reverse(a); return a }) }, fine: true},
		"wrong ids":                  {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { return renumbered(a, "x") }) }},
		"all answers with the id of one": {habit: func(s *stub) {
			replaced(s, func(a []map[string]any) any { return renumbered(a, string(a[1]["id"].(json.RawMessage))) })
		}},
		"results left out":         {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { delete(a[1], "result"); return a }) }},
		"results that are null":    {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { a[1]["result"] = nil; return a }) }},
		"no registry at the block": {habit: func(s *stub) { replaced(s, func(a []map[string]any) any { a[1]["result"] = "0x"; return a }) }},
		"an error without code": {habit: func(s *stub) {
			replaced(s, func(a []map[string]any) any { delete(a[1], "result"); a[1]["error"] = map[string]any{}; return a })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := newStub(t), newStub(t)
			bad.setAgent(t)
			good.setAgent(t)
			bad.do(func() { c.habit(bad) })
			alone, both := newTestReader(t, nil, bad), newTestReader(t, nil, bad, good)
			require.NoError(t, askKey(t, both), "the second endpoint answers")
			if err := askKey(t, alone); c.fine {
				require.NoError(t, err)
				require.Equal(t, []bool{false, false}, both.States()[0].Bad)
				return
			} else {
				require.ErrorIs(t, err, ErrUnavailable)
			}
			require.ErrorIs(t, alone.States()[0].Err, ErrUnavailable)
			require.NoError(t, both.States()[0].Err)
			require.Equal(t, []bool{!c.quiet, false}, both.States()[0].Bad)
			if c.pause == 0 {
				return
			}
			bad.do(func() { bad.answer, bad.requests = nil, 0; clear(bad.methods) })
			alone.pass(c.pause - 300*time.Millisecond)
			require.ErrorIs(t, askKey(t, alone), ErrUnavailable)
			bad.do(func() { require.Zero(t, bad.requests, "not asked during its pause") })
			alone.pass(300 * time.Millisecond)
			require.NoError(t, askKey(t, alone))
		})
	}
}

func renumbered(answers []map[string]any, id string) any {
	for _, m := range answers {
		m["id"] = json.RawMessage(id)
		if id == "x" {
			m["id"] = "x"
		}
	}
	return answers
}

func byNumberOnly(s *stub) {
	s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
		if p[1][0] == '{' {
			return nil, &stubError{Code: -32602, Message: "invalid block parameter"}
		}
		return s.call(p)
	}
}

func noFinal(s *stub) {
	s.methods["eth_getBlockByNumber"] = func(p []json.RawMessage) (any, *stubError) {
		if strings.Contains(string(p[0]), "finalized") {
			return nil, nil
		}
		return s.block(p)
	}
}

// A limit of calls makes no slice smaller: it says nothing about their size.
func TestHabits_RateLimitIsNoRange(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.head, s.final = 5000, 100
	s.methods["eth_getLogs"] = func([]json.RawMessage) (any, *stubError) {
		return nil, &stubError{Code: -32005, Message: "limit exceeded"}
	}
	r := newTestReader(t, nil, s)
	require.ErrorIs(t, r.chains[stubChain].poll(t.Context()), ErrUnavailable)
	require.Equal(t, uint64(500), r.chains[stubChain].logRange.Load())
}

// A read of feedback ends when its time is over, which is no answer that is too large.
func TestHabits_FeedbackWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s.answer = func(_ http.ResponseWriter, body []byte) bool {
		if bytes.Contains(body, []byte("eth_getLogs")) {
			<-release
		}
		return false
	}
	r, id := feedbackReader(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Feedback(ctx, id, []*big.Int{big.NewInt(7)}, Mark{}, 0)
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorIs(t, err, ErrUnavailable)
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}
