package nodetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"stoa/identity/attest"
	"stoa/identity/key"
	"stoa/protocol/must"
)

// Proven asks for the proof behind an address, verifies it with what the node's key and blocks show, and returns it.
func (h *House) Proven(address, kind string, want map[string]attest.Result) []byte {
	h.T.Helper()
	a := h.Ask("GET", address+"/proof", "").Is(200)
	require.Equal(h.T, attest.MediaType, a.Header().Get("Content-Type"))
	raw := a.Body.Bytes()
	d := must.Get(attest.Parse(raw))(h.T)
	require.Equal(h.T, kind, d.Subject.Kind)
	r := attest.Verify(h.T.Context(), raw, h.Trusting(raw))
	require.Equal(h.T, want, Steps(r), "%s: %+v", address, r.Steps)
	require.Equal(h.T, attest.Verified, r.Verdict, "%s: %+v", address, r.Steps)
	require.Equal(h.T, attest.Undecided, attest.Verify(h.T.Context(), raw, attest.Options{}).Verdict, "%s: nothing is known", address)
	return raw
}

// GoodSteps are the results of steps that hold, and of those that are only said.
func GoodSteps(names string, said ...string) map[string]attest.Result {
	all := map[string]attest.Result{}
	for name := range strings.FieldsSeq(names) {
		all[name] = attest.Good
	}
	for _, name := range said {
		all[name] = attest.Said
	}
	return all
}

// Steps are the results of a report by the names of its steps.
func Steps(r attest.Report) map[string]attest.Result {
	all := map[string]attest.Result{}
	for _, s := range r.Steps {
		all[s.Name] = s.Result
	}
	return all
}

// Trusting are the options of a verifier that knows the node's key and the blocks of the documents.
func (h *House) Trusting(docs ...[]byte) attest.Options {
	h.T.Helper()
	o := attest.Options{Keys: key.Set{Keys: []key.Public{h.Keys.Ed.Published()}}}
	for _, raw := range docs {
		if d := must.Get(attest.Parse(raw))(h.T); d.Authority.BlockHash != "" {
			o.Blocks = append(o.Blocks, d.Authority.BlockHash)
		}
	}
	return o
}
