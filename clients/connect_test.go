package clients

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/pow"
)

// A person is a browser that is signed in, as far as forms need one.
type person struct {
	*http.Client
	w *world
}

func (p person) send(path string, form url.Values) string {
	p.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.w.URL+path, strings.NewReader(form.Encode()))
	require.NoError(p.w.t, err)
	for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html", "Origin": p.w.URL,
		"Sec-Fetch-Site": "same-origin"} {
		req.Header.Set(name, value)
	}
	res, err := p.Do(req)
	require.NoError(p.w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(p.w.t, err)
	require.Equal(p.w.t, http.StatusOK, res.StatusCode, "%s", body)
	return string(body)
}

var onward = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)

// TestMCP_Connect: the SDK of MCP for Go goes from no token to an owner's answered thread, with one press of the owner.
func TestMCP_Connect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("asha")
	opened, err := node.Do(t.Context(), w.Admin(), protocol.OpenAccount, protocol.NewAccount{Name: "Asha", Handles: []string{"asha"}})
	require.NoError(t, err)
	link := opened.SignIn.URL
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	owner := person{&http.Client{Jar: jar}, w}
	owner.send("/sign-in", url.Values{"ticket": {link[strings.Index(link, "=")+1:]}})
	thread := w.begins("asha")

	const redirect = "http://127.0.0.1:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "Go", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none"},
		},
		AuthorizationCodeFetcher: func(_ context.Context, asks *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			u, err := url.Parse(asks.URL)
			if err != nil {
				return nil, err
			}
			form := u.Query()
			form.Set("do", "grant_client")
			form["scopes"] = strings.Fields(form.Get("scope"))
			to := onward.FindStringSubmatch(owner.send(u.Path, form))
			if to == nil {
				return nil, errors.New("nothing was allowed")
			}
			back, err := url.Parse(html.UnescapeString(to[1]))
			if err != nil {
				return nil, err
			}
			return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state"), Iss: back.Query().Get("iss")}, nil
		},
	})
	require.NoError(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.URL + protocol.OwnerMCPPath, DisableStandaloneSSE: true,
		OAuthHandler: handler}, nil)
	require.NoError(t, err)
	defer s.Close()
	got, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "answer_thread", Arguments: map[string]any{"threadId": thread, "message": "Yes."}})
	require.NoError(t, err)
	require.False(t, got.IsError, "%v", got.Content)
}

// begins begins a conversation with an agent, as a visitor with a proof of work, and returns its id.
func (w *world) begins(handle string) string {
	w.t.Helper()
	var challenge pow.Challenge
	require.NoError(w.t, json.Unmarshal([]byte(w.get("/api/public/pow?purpose=contact")), &challenge))
	solution, err := pow.Solve(w.t.Context(), challenge)
	require.NoError(w.t, err)
	raw, err := json.Marshal(map[string]any{"message": "Do you make paper?", "kind": "question", "pow": solution})
	require.NoError(w.t, err)
	res, err := http.Post(w.URL+"/api/public/agents/"+handle+"/contact", "application/json", strings.NewReader(string(raw)))
	require.NoError(w.t, err)
	defer res.Body.Close()
	var begun protocol.ContactReceipt
	require.NoError(w.t, json.NewDecoder(res.Body).Decode(&begun))
	require.NotEmpty(w.t, begun.ThreadID)
	return begun.ThreadID
}
