package web_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// TestBrowser_Home: the first page says in the reader's language what it is, in its title too, and how a conversation is called that
// began in another one.
func TestBrowser_Home(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	nearShop(h)
	b := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 200, b.Open("/@rao-tiffins"))
	require.Equal(t, 200, b.Send("#write", "message", "Lunch for nine?", "kind", "quote_request"), b.Text("main"))
	said := b.Text("h1")
	require.Contains(t, said, "to @rao-tiffins")
	require.Equal(t, 200, b.Open("/"))
	require.Equal(t, said, b.Text("[data-threads] a"))
	require.Contains(t, nodetest.Look[string](b, "document.title"), "Find a shop or a person · ")
	inHindi(b, true)
	require.Equal(t, 200, b.Open(nodetest.Look[string](b, `document.querySelector("[data-threads] a").pathname`)))
	hindi := b.Text("h1")
	require.NotEqual(t, said, hindi)
	inHindi(b, false)
	b.Open(nodetest.Look[string](b, "location.pathname")) // noted in English again
	inHindi(b, true)
	require.Equal(t, 200, b.Open("/"))
	require.Equal(t, hindi, b.Text("[data-threads] a"))
	require.Contains(t, nodetest.Look[string](b, "document.title"), "दुकान या व्यक्ति खोजें · ")
}
