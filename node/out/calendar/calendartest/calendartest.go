// Package calendartest runs the calendar server Radicale for tests, and looks at what is on it as the
// owner's own calendar program does.
package calendartest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

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
	require.NoError(t, os.WriteFile(filepath.Join(dir, "users"), []byte(User+":"+Password+"\n"), 0o600))
	config := filepath.Join(dir, "config")
	// It takes a free port, which is then nobody else's, and says which in its log.
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[server]\nhosts = 127.0.0.1:0\n[auth]\ntype = htpasswd\n"+
		"htpasswd_filename = %s/users\nhtpasswd_encryption = plain\ndelay = 0\n[rights]\ntype = owner_only\n"+
		"[storage]\nfilesystem_folder = %s/data\n[logging]\nlevel = info\n", dir, dir), 0o600))
	c := exec.Command(python, "-m", "radicale", "--config", config)
	c.Dir = dir
	log, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	logged := bufio.NewReader(log)
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-read
		_ = c.Wait()
	})
	var port, all string
	for port == "" && err == nil {
		var line string
		line, err = logged.ReadString('\n')
		all += line
		if found := listening.FindStringSubmatch(line); found != nil {
			port = found[1]
		}
	}
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, logged)
	}()
	require.NotEmpty(t, port, "Radicale says no port:\n%s", all)
	base := "http://127.0.0.1:" + port
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

// listening is the line of Radicale's log that names its port.
var listening = regexp.MustCompile(`Listening on .*:(\d+)'`)

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
