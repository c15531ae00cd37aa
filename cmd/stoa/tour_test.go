package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// shows says what the output of a command of docs/TOUR.md contains.
var shows = []struct{ command, output string }{
	{"/api/public/board\n./stoa call read_board", `"items":`},
	{"board?q=paper", "Rag paper?"},
	{"call contact_agent", `"readToken"`},
	{"call answer_thread", "Do you deliver to Jaipur?"},
	{"call check_conversation", "Yes, on Thursdays."},
	{"call bid_for_attention", `"paymentUrl"`},
	{"call answer_bid", "Wheat paste, and patience."},
	{"call request_meeting", `"unconfirmed"`},
	{"call approve_meeting", `"approved"`},
	{"verifiedOnly", `"chain-key"`},
	{"identity keys --yes", ""},
	{"admin identity put", ""},
	{"agent-card.json", `"signatures"`},
	{"--data data/third", "Hand-made paper"},
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	exitStatus = regexp.MustCompile(`# exit status (\d)`)
	// What a reader copies from one answer into the next command. The first of a mail's links confirms.
	copied = []struct {
		gap   string
		found *regexp.Regexp
	}{
		{"thr_…", regexp.MustCompile(`thr_[0-9a-z]{26}`)},
		{"stoa_read_…", regexp.MustCompile(`stoa_read_[\w-]+`)},
		{"bid_…", regexp.MustCompile(`bid_[0-9a-z]{26}`)},
		{"pay_…", regexp.MustCompile(`/pay/([^"]+)"`)},
		{"mtg_…", regexp.MustCompile(`mtg_[0-9a-z]{26}`)},
	}
	mailed = regexp.MustCompile(`ticket=([\w-]+)`)
)

// TestTour runs the commands of docs/TOUR.md as they are written, but for the ports.
func TestTour(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("../../docs/TOUR.md"))(t)
	port, third := freePorts(t, 2), freePorts(t, 1)
	dir := t.TempDir()
	w := startWorld(t, filepath.Join(dir, "data", "dev"), port)
	require.NoError(t, os.Symlink(filepath.Join(bin(t), "stoa"), filepath.Join(dir, "stoa")))
	here := strings.NewReplacer(":8080", fmt.Sprint(":", port), ":8090", fmt.Sprint(":", port+10), ":8100", fmt.Sprint(":", third),
		":8101", fmt.Sprint(":", third+1), "1337=http://127.0.0.1:…,0x…,0x…", w.Chain.flag())
	filled := map[string]string{}
	blocks := shellBlock.FindAllStringSubmatch(string(raw), -1)
	seen := 0
	for _, m := range blocks {
		block, want, status := here.Replace(m[1]), "", 0
		if strings.Contains(block, "ticket_…") {
			require.Eventually(t, func() bool { return mailed.MatchString(w.log.String()) }, soon, 20*time.Millisecond, "the mail")
			block = strings.ReplaceAll(block, "ticket_…", mailed.FindStringSubmatch(w.log.String())[1])
		}
		for gap, value := range filled {
			block = strings.ReplaceAll(block, gap, value)
		}
		if m := exitStatus.FindStringSubmatch(block); m != nil {
			status, _ = strconv.Atoi(m[1])
		}
		for _, s := range shows {
			if strings.Contains(m[1], s.command) {
				want = s.output
				seen++
			}
		}
		output := typedUntil(t, dir, block, status, want)
		for _, c := range copied {
			if m := c.found.FindStringSubmatch(output); m != nil {
				filled[c.gap] = m[len(m)-1]
			}
		}
	}
	require.Equal(t, len(shows), seen, "a command of shows is not in docs/TOUR.md")
}

// typedUntil runs commands in a shell, again and again until they end as they should: a reader waits for other nodes
// and the chain, too.
func typedUntil(t *testing.T, dir, block string, status int, want string) string {
	t.Helper()
	script := `set -euo pipefail
if test -f vars; then . ./vars; fi
curl() { command curl -sS --fail-with-body "$@"; }
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
` + block + `
{ declare -p TOKEN ASHA STOA_CHAIN 2>/dev/null || true; } > vars
`
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		command := exec.Command("bash", "-c", script)
		command.Dir = dir
		output, err := command.CombinedOutput()
		code := 0
		if e := (*exec.ExitError)(nil); errors.As(err, &e) {
			code = e.ExitCode()
		} else {
			require.NoError(t, err)
		}
		if code == status && strings.Contains(string(output), want) {
			return string(output)
		}
		if time.Since(begin) > soon {
			t.Fatalf("exit status %d, wanted %d and %q in the output of\n%s\n%s", code, status, want, block, output)
		}
	}
}
