package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// TestBrowser_LiveRetries: the page of a conversation whose stream is refused asks again, and shows the answer then.
func TestBrowser_LiveRetries(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	b, owner := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
	said := listen(b)
	b.Open("/@asha")
	require.Equal(t, 200, b.Send("#write", "message", "Can you quote for forty chairs?"))
	thread := nodetest.Look[string](b, "location.pathname")
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(said.take(), " "), "503") }, time.Minute, 20*time.Millisecond)
	runPulse(h)
	signedIn(owner, cookie)
	owner.Open("/account" + thread)
	require.Equal(t, 200, owner.Send("#answer", "message", "Yes, in May."))
	shows(b, `document.querySelector("main").innerText.includes("Yes, in May.")`)
}
