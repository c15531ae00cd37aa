// Package nodetest is what tests of a whole node share: nodes (House), a chain that they read (EVM, Stage), who calls them
// (Agent, Operator, owners' tokens, sessions, signed requests), a browser (Tab) and pages (Page), a mailbox (Postbox), and
// the end of a move (Mover). Only tests import it, those in packages of their own such as web_test.
//
// A test begins with a House, which is asked through its public handler, and reads the answer:
//
//	h := nodetest.New(t)
//	h.Hosted("asha")
//	token := h.OwnerToken("asha")
//	var p protocol.Profile
//	h.Ask("GET", "/api/owner/profile?handle=asha", "", "Authorization", "Bearer "+token).Into(&p)
//
// Start makes one that listens and whose work runs, which peers and clients need. Any and Each run a test on the engines.
// Methods fail the test when something is not as they say; they return what a test decides upon.
package nodetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// shared is what many tests of a package use and what ends after the last.
var shared struct {
	sync.Mutex
	ends []func()
}

func atEnd(end func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.ends = append(shared.ends, end)
}

// Main is the TestMain of a package whose tests open a browser or a chain: it runs the tests and ends what they shared.
func Main(m *testing.M) {
	code := m.Run()
	for _, end := range shared.ends {
		end()
	}
	os.Exit(code)
}

// Source is a file or folder of the repository, whatever package is tested.
func Source(path ...string) string {
	up := "."
	for range 6 {
		if _, err := os.Stat(filepath.Join(up, "go.mod")); err == nil {
			break
		}
		up = filepath.Join(up, "..")
	}
	return filepath.Join(append([]string{up}, path...)...)
}
