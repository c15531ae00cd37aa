package node

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
)

// agent puts a profile with a contact policy on the node and gives an owner's
// token for it.
func (h *house) agent(handle, policy string) (token string) {
	h.t.Helper()
	_, _, err := h.Admin().PutProfile(context.Background(), fmt.Appendf(nil, `{"handle":%q,"name":"Agent %s","kind":"person","contactPolicy":%s}`,
		handle, handle, policy))
	require.NoError(h.t, err)
	token, _, err = h.Admin().CreateToken(context.Background(), handle, "test", 0)
	require.NoError(h.t, err)
	return "Bearer " + token
}

const openPolicy = `{"anonymous":true,"outsideAgentsWithIdentity":true}`

// signedAs makes a request signed by an agent of this node.
func (h *house) signedAs(pair key.Pair, method, path, body string) answer {
	h.t.Helper()
	r := httptest.NewRequest(method, h.Base+path, bytes.NewReader([]byte(body)))
	r.RequestURI = path
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(h.t, err)
	require.NoError(h.t, httpsig.SignRequest(r, target, []byte(body), httpsig.SignOptions{Key: pair.Signer()}))
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return answer{w, h.t}
}

// write begins a thread anonymously.
func (h *house) write(handle, body string, headers ...string) answer {
	h.t.Helper()
	return h.ask("POST", "/api/public/agents/"+handle+"/contact", body, append(headers, "Proof-Of-Work", h.proof("contact"))...)
}

func (h *house) begun(handle, body string, headers ...string) (got protocol.ContactReceipt) {
	h.t.Helper()
	a := h.write(handle, body, headers...)
	require.Equal(h.t, 201, a.Code, "%s", a.Body)
	a.into(&got)
	return got
}

// TestContact_Writers is one conversation for each kind of writer
// (spec §2.11, §5): by proof of work, by signature, by an owner's token.
func TestContact_Writers(t *testing.T) {
	t.Parallel()
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		h.agent("asha", openPolicy)
		bob := h.agent("bob", openPolicy)
		pair := h.hosted("carol")
		const path, message = "/api/public/agents/asha/contact", `{"message":"Do you deliver to Jaipur?","kind":"quote_request","name":"Dev"}`
		for _, tt := range []struct {
			name   string
			ask    func(method, path, body string, token string) answer
			author protocol.Author
		}{
			{"anonymous", func(method, path, body, token string) answer {
				headers := []string{"Authorization", "Bearer " + token}
				if method == "POST" {
					headers = append(headers, "Proof-Of-Work", h.proof("contact"))
				}
				if token == "" {
					headers = headers[2:]
				}
				return h.ask(method, path, body, headers...)
			}, protocol.Author{Name: "Dev", Method: protocol.ByProof, Proof: protocol.AuthorProof{Level: protocol.ByNothing}}},
			{"signed", func(method, path, body, _ string) answer { return h.signedAs(pair, method, path, body) },
				protocol.Author{Name: "Load", Handle: new("carol"), Actor: new(h.Base + "/ap/agents/carol"), Verified: true, Method: protocol.BySignature,
					KeyID: new(pair.Thumbprint()), ClaimedName: "Dev",
					Proof: protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: new(h.Base + "/ap/agents/carol")}}},
			{"session", func(method, path, body, _ string) answer { return h.ask(method, path, body, "Authorization", bob) },
				protocol.Author{Name: "Agent bob", Handle: new("bob"), Actor: new(h.Base + "/ap/agents/bob"), Verified: true, Method: protocol.BySession,
					ClaimedName: "Dev", Proof: protocol.AuthorProof{Level: protocol.BySignIn, Subject: new(h.Base + "/ap/agents/bob")}}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				a := tt.ask("POST", path, message, "")
				require.Equal(t, 201, a.Code, "%s", a.Body)
				var begun protocol.ContactReceipt
				a.into(&begun)
				require.Equal(t, protocol.ThreadOpen, begun.State)
				require.Equal(t, h.Base+"/api/public/threads/"+begun.ThreadID, begun.URL)

				at := "/api/public/threads/" + begun.ThreadID
				a = tt.ask("POST", at+"/messages", `{"message":"And to Ajmer?"}`, begun.ReadToken)
				require.Equal(t, 201, a.Code, "%s", a.Body)
				a = tt.ask("GET", at, "", begun.ReadToken)
				require.Equal(t, 200, a.Code, "%s", a.Body)
				require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
				var got protocol.Conversation
				a.into(&got)
				timeless := func(a protocol.Author, at time.Time) protocol.Author {
					if a.Verified {
						require.Equal(t, at, *a.Proof.CheckedAt, "checked with the message")
						a.Proof.CheckedAt = nil
					}
					return a
				}
				require.Equal(t, tt.author, timeless(got.Writer, got.CreatedAt))
				require.Equal(t, protocol.QuoteRequest, got.Kind)
				require.Equal(t, 2, got.Count)
				require.True(t, got.Untrusted)
				var texts []string
				for _, m := range got.Messages.Items {
					texts = append(texts, m.Text)
					require.Equal(t, tt.author, timeless(m.Author, m.CreatedAt))
					require.Equal(t, protocol.WriterSide, m.From)
					require.True(t, m.Untrusted)
				}
				require.Equal(t, []string{"Do you deliver to Jaipur?", "And to Ajmer?"}, texts)
			})
		}
		require.Equal(t, protocol.NotFound, h.write("nobody", message).problem().Code)
	})
}

func TestContact_InProfile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for policy, want := range map[string]*string{
		openPolicy: new(h.Base + "/api/public/agents/asha/contact"),
		`{"anonymous":false,"outsideAgentsWithIdentity":true}`: nil,
	} {
		h.agent("asha", policy)
		var p protocol.Profile
		h.ask("GET", "/api/public/agents/asha", "").into(&p)
		require.Equal(t, want, p.Interfaces.PublicContact, policy)
		require.Equal(t, protocol.ContactKinds, p.ContactPolicy.Kinds, "none named: all")
	}
	require.Equal(t, http.StatusNotFound, h.ask("GET", "/api/public/agents/asha/contacts", "").Code)
}

// TestContact_HandleTakenAgain: who takes the handle of a profile that is gone is
// someone else, to whom the threads that it began are unknown.
func TestContact_HandleTakenAgain(t *testing.T) {
	t.Parallel()
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		asha, bob := h.agent("asha", openPolicy), h.agent("bob", openPolicy)
		begun := h.begun("asha", `{"message":"Between us"}`, "Authorization", bob)
		h.answer(asha, begun.ThreadID, "Yes.")
		var signed protocol.ContactReceipt
		h.signedAs(h.hosted("carol"), "POST", "/api/public/agents/asha/contact", `{"message":"Signed"}`).into(&signed)
		path := "/api/public/threads/" + begun.ThreadID
		require.Equal(t, 200, h.ask("GET", path, "", "Authorization", bob).Code)
		news := func(path string) answer { return h.ask("GET", path, "", "Authorization", bob) }
		require.Equal(t, []string{"agent asha Yes."}, newsOf(h.digest("", news)))

		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "bob"))
		bob = h.agent("bob", openPolicy)
		require.Equal(t, protocol.NotFound, h.ask("GET", path, "", "Authorization", bob).problem().Code)
		require.Equal(t, protocol.NotFound, h.ask("POST", path+"/messages", `{"message":"It is me"}`, "Authorization", bob).problem().Code)
		require.Empty(t, newsOf(h.digest("", news)))
		h.answer(asha, begun.ThreadID, "Are you there?")
		require.Empty(t, newsOf(h.digest("", news)), "nor what is written now")

		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "carol"))
		carol := h.agent("carol", openPolicy)
		h.answer(asha, signed.ThreadID, "For the one who signed")
		require.Empty(t, newsOf(h.digest("", func(path string) answer { return h.ask("GET", path, "", "Authorization", carol) })))

		var kept protocol.Conversation
		h.ask("GET", path, "", "Authorization", "Bearer "+begun.ReadToken).into(&kept)
		require.Equal(t, 3, kept.Count, "its read token opens it still")
	})
}
