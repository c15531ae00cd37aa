package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// write begins a thread anonymously.
func write(h *nodetest.House, handle, body string, headers ...string) nodetest.Answer {
	h.T.Helper()
	return h.Ask("POST", "/api/public/agents/"+handle+"/contact", body, append(headers, "Proof-Of-Work", h.Proof("contact"))...)
}

func begun(h *nodetest.House, handle, body string, headers ...string) (got protocol.ContactReceipt) {
	h.T.Helper()
	a := write(h, handle, body, headers...).Is(201)
	a.Into(&got)
	return got
}

// TestContact_Writers is one conversation for each kind of writer
// (spec §2.11, §5): by proof of work, by signature, by an owner's token.
func TestContact_Writers(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		h.Agent("asha", nodetest.OpenPolicy)
		bob := h.Agent("bob", nodetest.OpenPolicy)
		pair := h.Hosted("carol")
		const path, message = "/api/public/agents/asha/contact", `{"message":"Do you deliver to Jaipur?","kind":"quote_request","name":"Dev"}`
		for _, tt := range []struct {
			name   string
			ask    func(method, path, body string, token string) nodetest.Answer
			author protocol.Author
		}{
			{"anonymous", func(method, path, body, token string) nodetest.Answer {
				headers := []string{"Authorization", "Bearer " + token}
				if method == "POST" {
					headers = append(headers, "Proof-Of-Work", h.Proof("contact"))
				}
				if token == "" {
					headers = headers[2:]
				}
				return h.Ask(method, path, body, headers...)
			}, protocol.Author{Name: "Dev", Method: protocol.ByProof, Proof: protocol.AuthorProof{Level: protocol.ByNothing}}},
			{"signed", func(method, path, body, _ string) nodetest.Answer { return h.AskSigned(pair, method, path, body) },
				protocol.Author{Name: "Load", Handle: new("carol"), Actor: new(h.Base + "/ap/agents/carol"), Verified: true, Method: protocol.BySignature,
					KeyID: new(pair.Thumbprint()), ClaimedName: "Dev",
					Proof: protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: new(h.Base + "/ap/agents/carol")}}},
			{"session", func(method, path, body, _ string) nodetest.Answer {
				return h.Ask(method, path, body, "Authorization", bob)
			},
				protocol.Author{Name: "Agent bob", Handle: new("bob"), Actor: new(h.Base + "/ap/agents/bob"), Verified: true, Method: protocol.BySession,
					ClaimedName: "Dev", Proof: protocol.AuthorProof{Level: protocol.BySignIn, Subject: new(h.Base + "/ap/agents/bob")}}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				a := tt.ask("POST", path, message, "")
				require.Equal(t, 201, a.Code, "%s", a.Body)
				begun := nodetest.As[protocol.ContactReceipt](a)
				require.Equal(t, protocol.ThreadOpen, begun.State)
				require.Equal(t, h.Base+"/api/public/threads/"+begun.ThreadID, begun.URL)

				at := "/api/public/threads/" + begun.ThreadID
				a = tt.ask("POST", at+"/messages", `{"message":"And to Ajmer?"}`, begun.ReadToken)
				require.Equal(t, 201, a.Code, "%s", a.Body)
				a = tt.ask("GET", at, "", begun.ReadToken)
				require.Equal(t, 200, a.Code, "%s", a.Body)
				require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
				got := nodetest.As[protocol.Conversation](a)
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
		require.Equal(t, protocol.NotFound, write(h, "nobody", message).Problem().Code)
	})
}

// TestContact_HandleTakenAgain: who takes the handle of a profile that is gone is
// someone else, to whom the threads that it began are unknown.
func TestContact_HandleTakenAgain(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		asha, bob := h.Agent("asha", nodetest.OpenPolicy), h.Agent("bob", nodetest.OpenPolicy)
		begun := begun(h, "asha", `{"message":"Between us"}`, "Authorization", bob)
		answerThread(h, asha, begun.ThreadID, "Yes.")
		signed := nodetest.As[protocol.ContactReceipt](h.AskSigned(h.Hosted("carol"), "POST", "/api/public/agents/asha/contact", `{"message":"Signed"}`))
		path := "/api/public/threads/" + begun.ThreadID
		require.Equal(t, 200, h.Ask("GET", path, "", "Authorization", bob).Code)
		news := func(path string) nodetest.Answer { return h.Ask("GET", path, "", "Authorization", bob) }
		require.Equal(t, []string{"agent asha Yes."}, newsOf(digest(h, "", news)))

		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "bob"))
		bob = h.Agent("bob", nodetest.OpenPolicy)
		require.Equal(t, protocol.NotFound, h.Ask("GET", path, "", "Authorization", bob).Problem().Code)
		require.Equal(t, protocol.NotFound, h.Ask("POST", path+"/messages", `{"message":"It is me"}`, "Authorization", bob).Problem().Code)
		require.Empty(t, newsOf(digest(h, "", news)))
		answerThread(h, asha, begun.ThreadID, "Are you there?")
		require.Empty(t, newsOf(digest(h, "", news)), "nor what is written now")

		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "carol"))
		carol := h.Agent("carol", nodetest.OpenPolicy)
		answerThread(h, asha, signed.ThreadID, "For the one who signed")
		require.Empty(t, newsOf(digest(h, "", func(path string) nodetest.Answer { return h.Ask("GET", path, "", "Authorization", carol) })))

		kept := nodetest.As[protocol.Conversation](h.Ask("GET", path, "", "Authorization", "Bearer "+begun.ReadToken))
		require.Equal(t, 3, kept.Count, "its read token opens it still")
	})
}
