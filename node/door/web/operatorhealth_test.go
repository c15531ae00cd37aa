package web_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/work/doctor"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestExamination: Health shows what is at fault with the node, with what to do about each; an operator mends it, and looks again.
func TestExamination(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, func(c *node.Config) {
		c.Chain = []string{"1=http://127.0.0.1:1,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
	})
	h.Work()
	b := nodetest.OpenBrowser(t, h.Base)
	said := listen(b)
	signedIn(b, h.SignInOperator())
	const health = "/account/node/health"
	look := func() {
		t.Helper()
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`form:has([value="look_again"]) button`))))
		require.Contains(t, b.Text(".done"), "The node is examining itself.")
	}
	shows := func(selector, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.Equal(t, 200, b.Open(health))
			return nodetest.Look[bool](b, `[...document.querySelectorAll("#checks ~ * `+selector+`")].some(e => e.textContent.includes(`+nodetest.Quoted(text)+`))`)
		}, 2*time.Minute, 50*time.Millisecond, "%s: %s", selector, text)
	}
	require.Equal(t, 200, b.Open(health))
	require.Contains(t, b.Text("main"), "The node has not examined itself yet.")
	stocks := nodetest.Look[[]string](b, `[...document.querySelectorAll("#storage ~ * tbody th")].map(e => e.textContent)`)
	require.Len(t, stocks, len(storage.Caps))
	for stock := range storage.Caps {
		require.NotContains(t, stocks, string(stock), "a stock has words")
	}
	look()
	shows("#check-backup", "No backup is known.")
	for selector, texts := range map[string][]string{
		"#check-backup":     {"At fault", "Name a place with the setting backup-dir"},
		"#check-chain":      {"At fault", "No endpoint of a chain answers.", "127.0.0.1:1", "Name one that does in the setting chain"},
		"#check-master-key": {"Look at it", "No copy of the master key is known.", "stoa doctor --key-copied -"},
		"#check-ports":      {"Not looked at"},
		"#check-address":    {"In order", h.Base},
	} {
		for _, text := range texts {
			require.Contains(t, nodetest.Look[string](b, `document.querySelector("`+selector+`").textContent`), text, selector)
		}
	}
	b.Picture("health")
	require.Equal(t, 200, b.Open("/account/node"))
	require.Contains(t, b.Text(`.index a[href="`+health+`"]`), "to look at")

	require.NoError(t, h.Node.Admin().Backup(t.Context(), h.Config, filepath.Join(t.TempDir(), "copy.db"), nil))
	master := filepath.Join(h.Config.Data, "master.key")
	raw := must.Get(os.ReadFile(master))(t)
	require.NoError(t, doctor.KeyCopied(t.Context(), h.DB, master, raw))
	require.Equal(t, 200, b.Open(health))
	look()
	shows("#check-master-key", "In order")
	require.NotContains(t, nodetest.Look[string](b, `document.querySelector("#check-backup").textContent`), "At fault")
	require.Empty(t, said.take())
}
