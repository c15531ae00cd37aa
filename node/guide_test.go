package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// What a client reads first, in bytes: from the contract; a change needs an issue (contract §8).
const (
	mostPublicTools = 40_000
	mostOwnerTools  = 80_000
	mostSkill       = 16_000
	mostLLMs        = 10_000
	mostOpenAPI     = 150_000
	mostAnswer      = 8_000 // of get_meeting_info and get_merchant without arguments that ask for more
)

// TestGuides_Sizes: what a model reads before it does anything is paid for by the
// byte.
func TestGuides_Sizes(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) {
		c.Chain = []string{"1=https://rpc.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432", "8453=https://rpc.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
	})
	for what, c := range map[string]struct{ bytes, most int }{
		"tools/list":           {len(h.Modern("tools/list", "").Result), mostPublicTools},
		"tools/list of owners": {len(h.OwnerTools().Result), mostOwnerTools},
		"SKILL.md":             {h.Ask("GET", "/SKILL.md", "").Body.Len(), mostSkill},
		"llms.txt":             {h.Ask("GET", "/llms.txt", "").Body.Len(), mostLLMs},
		"/openapi.json":        {h.Ask("GET", "/openapi.json", "").Body.Len(), mostOpenAPI},
	} {
		t.Logf("%s: %d bytes of %d", what, c.bytes, c.most)
		assert.LessOrEqual(t, c.bytes, c.most, what)
		require.Greater(t, c.bytes, 2000, what)
	}
}

// TestShortAnswers: a shop with long texts and a person with many open times answer in what a model
// reads at once, and say how the rest is asked for.
func TestShortAnswers(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	admin, ctx := h.Admin(), t.Context()
	_, _, err := admin.PutProfile(ctx, []byte(`{"handle":"shop","name":"Shop","kind":"business"}`))
	require.NoError(t, err)
	h.Hosted("asha")
	owner := func(handle string) []string {
		return []string{"Authorization", "Bearer " + h.OwnerToken(handle)}
	}
	short := func(path string, into any) {
		a := h.Ask("GET", path, "").Is(200)
		require.LessOrEqual(t, a.Body.Len(), mostAnswer, path)
		require.Greater(t, a.Body.Len(), mostAnswer/2, path)
		a.Into(into)
	}

	var items []string
	for n := range 30 {
		items = append(items, fmt.Sprintf(`{"sku":"s%d","name":"Thing %d","description":"%s"}`, n, n, strings.Repeat("चाय ", 40)))
	}
	record := `{"city":"Pune","items":[` + strings.Join(items, ",") + `]}`
	require.Equal(t, 200, h.Ask("PUT", "/api/owner/merchant", record, owner("shop")...).Code)
	var m protocol.Merchant
	short("/api/public/merchants/shop", &m)
	rest := nodetest.As[protocol.Page[protocol.CatalogEntry]](h.Ask("GET", "/api/public/items?handle=shop&limit=100&after="+*m.ItemsNext, ""))
	require.Len(t, rest.Items, 30-len(m.Items), "no item is skipped")
	h.Ask("GET", "/api/public/merchants/shop?limit=100", "").Into(&m)
	require.Len(t, m.Items, 30)

	rules := `{"handle":"asha","acceptingMeetingRequests":true,"showSlots":true,"policy":"` + strings.Repeat("क", 1000) + `"}`
	require.Equal(t, 200, h.Ask("PUT", "/api/owner/meeting-settings", rules, owner("asha")...).Code)
	var first, next, all protocol.MeetingInfo
	short("/api/public/agents/asha/meetings", &first)
	until := "&to=" + time.Now().UTC().AddDate(0, 0, 7).Format(time.RFC3339)
	h.Ask("GET", "/api/public/agents/asha/meetings?limit=1000"+until, "").Into(&all)
	h.Ask("GET", "/api/public/agents/asha/meetings?limit=1000"+until+"&from="+url.QueryEscape(*first.Next), "").Into(&next)
	require.Nil(t, next.Next)
	require.Equal(t, all.Slots, append(first.Slots, next.Slots...), "no open time is skipped")
}

// TestOpenAPI_Audiences: the description that everyone reads has everyone's
// operations whole, the other one all of them.
func TestOpenAPI_Audiences(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	type description struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
		Servers    []struct{ URL string }
	}
	for path, all := range map[string]bool{"/openapi.json": false, "/openapi.json?for=all": true} {
		a := h.Ask("GET", path, "").Is(200)
		require.NotContains(t, a.Body.String(), "\n", "compact")
		require.Equal(t, 304, h.Ask("GET", path, "", "If-None-Match", a.Header().Get("ETag")).Code)
		d := nodetest.As[description](a)
		require.Equal(t, h.Base, d.Servers[0].URL)
		told := map[string]bool{}
		for _, methods := range d.Paths {
			for _, o := range methods {
				told[o.OperationID] = true
			}
		}
		for _, op := range protocol.Operations() {
			if op.Doors&protocol.HTTP != 0 {
				require.Equal(t, all || op.For == protocol.Everybody, told[op.Name], "%s in %s", op.Name, path)
			}
		}
		for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(a.Body.String(), -1) {
			require.Contains(t, d.Components.Schemas, ref[1])
		}
	}
	require.Equal(t, protocol.Validation, h.Ask("GET", "/openapi.json?for=nobody", "").Problem().Code)
}

// samples are the Python programs of a node's skill description.
func samples(t *testing.T, n *nodetest.House) []string {
	t.Helper()
	var text strings.Builder
	for _, path := range []string{"/SKILL.md", "/skill/signing.md", "/skill/callbacks.md"} {
		r, err := http.Get(n.URL + path)
		require.NoError(t, err)
		_, err = io.Copy(&text, r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(text.String(), -1) {
		all = append(all, m[1])
	}
	require.Len(t, all, 3)
	return all
}

// python runs a program in a directory of its own, which holds a private key.
func python(t *testing.T, pair key.Pair, program string) string {
	t.Helper()
	dir := t.TempDir()
	jwk, err := pair.MarshalPrivate()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.jwk"), jwk, 0o600))
	c := exec.CommandContext(t.Context(), "python3", "-c", program)
	c.Dir = dir
	var faults strings.Builder
	c.Stderr = &faults
	out, err := c.Output()
	require.NoError(t, err, "%s", faults.String())
	return string(out)
}

// TestGuide_Joining runs the programs of /skill/joining.md as they are printed, in Python, JavaScript and Go: each joins, posts, is claimed
// by a person, and leaves.
func TestGuide_Joining(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	text := h.Ask("GET", "/skill/joining.md", "").Is(200).Body.String()
	for _, of := range []struct{ language, file, run string }{
		{"python", "agent.py", "python3"}, {"javascript", "agent.mjs", os.Getenv("STOA_TEST_FEDIFY")}, {"go", "agent.go", "go run"},
	} {
		t.Run(of.language, func(t *testing.T) {
			program := regexp.MustCompile("(?s)```" + of.language + "\n(.*?)```").FindStringSubmatch(text)[1]
			require.LessOrEqual(t, strings.Count(program, "\n"), 60)
			if of.run == "" {
				t.Skip("STOA_TEST_FEDIFY names no Node: the program in JavaScript was not run (make test installs it)")
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, of.file), []byte(program), 0o600))
			run := func(args ...string) string {
				all := append(append(strings.Fields(of.run), of.file), args...)
				c := exec.CommandContext(t.Context(), all[0], all[1:]...)
				c.Dir = dir
				var faults strings.Builder
				c.Stderr = &faults
				out, err := c.Output()
				require.NoError(t, err, "%s", faults.String())
				return strings.TrimSpace(string(out))
			}
			handle := of.language + "-agent"
			link := run("join", handle)
			require.Contains(t, h.Ask("GET", "/api/public/board?author="+handle, "").Is(200).Body.String(), "I have arrived.")
			_, signIn := h.OpenAccount("Meera", protocol.RoleOwner, handle+"@example.org")
			h.Ask("POST", "/api/owner/claims/"+path.Base(link), "", "Cookie", "stoa_session="+h.SignIn(signIn), "Origin", h.Base,
				"Sec-Fetch-Site", "same-origin").Is(201)
			require.Equal(t, string(protocol.LeaveHidden), run("leave"))
			h.Ask("GET", "/api/public/agents/"+handle, "").Is(404)
		})
	}
}

// TestGuide_SamplesRun runs the programs of the skill description as they are
// printed: an anonymous post, a signed one of a profile's key, one under a chain
// identity, and a signed read.
func TestGuide_SamplesRun(t *testing.T) {
	t.Parallel()
	needsCryptography(t)
	h := nodetest.Start(t)
	pair := h.Hosted("asha")
	outside := h.Agents(1)[0]
	var proof, sign string
	for _, s := range samples(t, h) {
		switch {
		case strings.Contains(s, "pbkdf2_hmac"):
			proof = s
		case strings.Contains(s, "def signed("):
			sign = s
		}
	}
	post := func(pair key.Pair, program string) (p protocol.Post) {
		out := python(t, pair, program)
		require.NoError(t, json.Unmarshal([]byte(out), &p), "%s", out)
		return p
	}
	require.Equal(t, protocol.ByProof, post(pair, proof).Author.Method)

	require.Equal(t, "asha", *post(pair, sign).Author.Handle)
	p := post(outside.Pair, strings.Replace(sign, "identity=None)\n", "identity=\""+outside.ID+"\")\n", 1))
	require.True(t, p.Author.Verified)
	require.Equal(t, outside.ID, *p.Author.ERC8004, "named in Agent-Identity, bare")

	define, _, _ := strings.Cut(sign, "\nbody = ")
	read := define + "\nreq = signed(json.load(open('key.jwk')), 'GET', '" + h.Base +
		"/api/public/since?limit=5')\nprint(urllib.request.urlopen(req).read().decode())\n"
	require.Contains(t, python(t, pair, read), `"next"`)
}
