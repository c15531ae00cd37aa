package web_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// TestTexts_Operator: what the operator writes is on its pages in the reader's language, in the footer, in the plain text about the
// service and in NodeInfo; a page without a text says so, and no link leads to it.
func TestTexts_Operator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"contact.md":    "Write to <b>us</b>.\n\n## By post\n1 Loom Street, Jaipur\nhttps://rao.example/map\n",
		"contact.hi.md": "हमें लिखें।", "privacy.md": "# What we keep\nNothing.",
		"notes.txt": "of no page", "terms.hi.md": "शर्तें ये हैं।",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	h := nodetest.New(t, func(c *node.Config) {
		c.Texts, c.GrievanceOfficer, c.Contact = dir, "Asha Rao, 1 Loom Street, Jaipur, grievance@rao.example", "mailto:security@rao.example"
	})
	read := func(path, language string) string {
		return h.Ask("GET", path, "", "Accept", "text/html", "Accept-Language", language).Is(200).Body.String()
	}
	page := read("/contact", "en")
	for _, want := range []string{"Write to &lt;b&gt;us&lt;/b&gt;.", `<h2 lang="" dir="auto">By post</h2>`, `href="https://rao.example/map"`,
		"Grievance officer", "Asha Rao", `href="mailto:security@rao.example"`, `href="/privacy"`} {
		require.Contains(t, page, want)
	}
	hindi := read("/contact", "hi")
	require.Contains(t, hindi, "हमें लिखें।")
	require.NotContains(t, hindi, "Write to")
	require.Contains(t, read("/privacy", "hi"), "Nothing.", "there is no other")
	require.Contains(t, read("/terms", "en"), "शर्तें ये हैं।", "it is in Hindi alone")
	require.Contains(t, h.Ask("GET", "/contact", "", "Accept", "text/markdown").Body.String(), "## By post")
	require.Contains(t, h.Ask("GET", "/api/public/about", "").Body.String(), h.Base+"/contact "+h.Base+"/terms "+h.Base+"/privacy\n")
	info := h.Ask("GET", "/nodeinfo/2.1", "").Body.String()
	require.Contains(t, info, `"texts":{"contact":"`+h.Base+`/contact","privacy":"`+h.Base+`/privacy","terms":"`+h.Base+`/terms"}`)

	bare := nodetest.New(t)
	require.Contains(t, bare.Ask("GET", "/terms", "", "Accept", "text/html").Body.String(), "has not written anything here")
	require.NotContains(t, bare.Ask("GET", "/", "", "Accept", "text/html").Body.String(), `href="/contact"`)
	require.NotContains(t, bare.Ask("GET", "/nodeinfo/2.1", "").Body.String(), "texts")

	for name, text := range map[string]string{"contacts.md": "x", "terms.fr.md": "x", "terms.md": "\xff", "privacy.md": string(make([]byte, 65<<10))} {
		other := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(other, name), []byte(text), 0o600))
		require.ErrorContains(t, must.Err(node.New(t.Context(), node.Config{Texts: other, Data: t.TempDir(), Listen: "127.0.0.1:0", Dev: true}, nil)), name)
	}
}
