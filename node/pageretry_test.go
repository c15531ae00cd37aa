package node

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBrowser_LiveRetries: the page of a conversation whose stream is refused asks again, and shows the answer then.
func TestBrowser_LiveRetries(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	b, owner := openBrowser(t, h.Base), openBrowser(t, h.Base)
	said := b.listen()
	b.open("/@asha")
	require.Equal(t, 200, b.send("#write", "message", "Can you quote for forty chairs?"))
	thread := look[string](b, "location.pathname")
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(said.take(), " "), "503") }, time.Minute, 20*time.Millisecond)
	h.runPulse()
	owner.signedIn(cookie)
	owner.open("/account" + thread)
	require.Equal(t, 200, owner.send("#answer", "message", "Yes, in May."))
	b.shows(`document.querySelector("main").innerText.includes("Yes, in May.")`)
}
