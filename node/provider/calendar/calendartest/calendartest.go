// Package calendartest runs the calendar server Radicale for tests, and looks at what is on it as the
// owner's own calendar program does.
package calendartest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The one user of the server, and the path of the one calendar that it has at the start.
const (
	User, Password = "asha", "s3cret"
	Collection     = "/asha/work/"
)

// Radicale starts the server, with one user and one calendar, and returns its address. Without
// STOA_TEST_RADICALE the test is skipped.
func Radicale(t testing.TB) string {
	t.Helper()
	python := os.Getenv("STOA_TEST_RADICALE")
	if python == "" {
		t.Skip("STOA_TEST_RADICALE=$(.ci/radicale) names a Python with Radicale")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := l.Addr().String()
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "users"), []byte(User+":"+Password+"\n"), 0o600))
	config := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[server]\nhosts = %s\n[auth]\ntype = htpasswd\n"+
		"htpasswd_filename = %s/users\nhtpasswd_encryption = plain\ndelay = 0\n[rights]\ntype = owner_only\n"+
		"[storage]\nfilesystem_folder = %s/data\n[logging]\nlevel = error\n", host, dir, dir), 0o600))
	c := exec.Command(python, "-m", "radicale", "--config", config)
	c.Dir, c.Stderr = dir, os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	base := "http://" + host
	require.Eventually(t, func() bool {
		resp, err := http.Get(base + "/")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	status, _ := Ask(t, base, "MKCALENDAR", Collection, `<?xml version="1.0"?><c:mkcalendar xmlns:d="DAV:" `+
		`xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop><d:displayname>Work 🗓</d:displayname><c:supported-calendar-component-set>`+
		`<c:comp name="VEVENT"/></c:supported-calendar-component-set></d:prop></d:set></c:mkcalendar>`)
	require.Equal(t, http.StatusCreated, status)
	return base
}

// Ask sends a request as the user, and returns the status and the body.
func Ask(t testing.TB, base, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth(User, Password)
	if method == http.MethodPut {
		req.Header.Set("Content-Type", "text/calendar")
	}
	if method == "PROPFIND" {
		req.Header.Set("Depth", "1")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// Put stores an object as the user, and returns the status.
func Put(t testing.TB, base, path, object string) int {
	t.Helper()
	status, _ := Ask(t, base, http.MethodPut, path, object)
	return status
}

var place = regexp.MustCompile(`<href>([^<]+\.ics)</href>`)

// Objects returns what is in a calendar, by path.
func Objects(t testing.TB, base, collection string) map[string]string {
	t.Helper()
	status, list := Ask(t, base, "PROPFIND", collection, `<?xml version="1.0"?><propfind xmlns="DAV:"><prop><getetag/></prop></propfind>`)
	require.Equal(t, http.StatusMultiStatus, status)
	all := map[string]string{}
	for _, found := range place.FindAllStringSubmatch(list, -1) {
		status, object := Ask(t, base, http.MethodGet, found[1], "")
		if status == http.StatusNotFound { // deleted meanwhile
			continue
		}
		require.Equal(t, http.StatusOK, status)
		all[found[1]] = object
	}
	return all
}
