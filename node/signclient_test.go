package node_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestSignClients runs the programs that sign for an agent, in JavaScript with WebCrypto alone and in Python with Debian's cryptography:
// by the key of a profile, by that of a chain identity, a read with a query, and with a key that nobody knows.
func TestSignClients(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	outside := h.Agents(1)[0]
	skill := h.Ask("GET", "/skill/signing.md", "").Is(200).Body.String()
	for _, of := range []struct{ file, run, lacks string }{
		{"sign.py", "python3", "no Python with the package cryptography"},
		{"sign.mjs", os.Getenv("STOA_TEST_FEDIFY"), "STOA_TEST_FEDIFY names no Node"},
	} {
		t.Run(of.file, func(t *testing.T) {
			file := must.Get(filepath.Abs("../clients/" + of.file))(t)
			program := string(must.Get(os.ReadFile(file))(t))
			require.LessOrEqual(t, strings.Count(program, "\n"), 60)
			if of.file == "sign.py" {
				_, rest, _ := strings.Cut(program, "def signed(")
				function, _, _ := strings.Cut(rest, "\n\n\n")
				require.Contains(t, skill, "def signed("+function, "the same as the sample of /skill/signing.md")
				if exec.Command("python3", "-c", "import cryptography").Run() != nil {
					of.run = ""
				}
			}
			if of.run == "" {
				t.Skipf("%s: %s was not run (make test installs it)", of.lacks, of.file)
			}
			call := func(pair key.Pair, input, path string, more ...string) (out []byte, status int) {
				jwk := filepath.Join(t.TempDir(), "key.jwk")
				require.NoError(t, os.WriteFile(jwk, must.Get(pair.MarshalPrivate())(t), 0o600))
				c := exec.CommandContext(t.Context(), of.run, append([]string{file, jwk, h.Base + path}, more...)...)
				var errs bytes.Buffer
				c.Stdin, c.Stderr = strings.NewReader(input), &errs
				out, _ = c.Output()
				require.Empty(t, errs.String())
				return out, c.ProcessState.ExitCode()
			}
			post := func(pair key.Pair, more ...string) (p protocol.Post) {
				out, status := call(pair, `{"kind":"offer","title":"Looms","body":"हथकरघा के दो करघे."}`, "/api/public/board", more...)
				require.Zero(t, status, "%s", out)
				require.NoError(t, json.Unmarshal(out, &p), "%s", out)
				require.Equal(t, "हथकरघा के दो करघे.", p.Body)
				return p
			}
			handle := "by-" + strings.TrimPrefix(filepath.Ext(file), ".")
			pair := h.Hosted(handle)
			p := post(pair)
			require.Equal(t, protocol.ByProfileKey, p.Author.Proof.Level)
			require.Equal(t, handle, *p.Author.Handle)
			p = post(outside.Pair, outside.ID)
			require.Equal(t, protocol.ByChainKey, p.Author.Proof.Level)
			require.Equal(t, outside.ID, *p.Author.ERC8004)

			out, status := call(pair, "", "/api/owner/threads?limit=5")
			require.Zero(t, status, "%s", out)
			require.Contains(t, string(out), `"items"`)
			out, status = call(must.Get(key.GenerateEd25519())(t), `{"kind":"offer","title":"x","body":"y"}`, "/api/public/board")
			require.Equal(t, 3, status)
			require.Contains(t, string(out), `"key-unknown"`)
		})
	}
}
