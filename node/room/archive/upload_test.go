package archive_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestArchive_SlowUploads: archives that come a byte now and then hold up nobody
// else's export and import, and an account sends one at a time.
func TestArchive_SlowUploads(t *testing.T) {
	t.Parallel()
	m := nodetest.NewMover(t)
	raw := export(m, map[string]any{"handle": "home"})
	host := strings.TrimPrefix(m.URL, "http://")
	begin := func(secret string) net.Conn { // the node reads the upload when it returns
		conn, err := net.Dial("tcp", host)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /api/owner/import?dryRun=true HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: "+
			"application/gzip\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", host, secret, len(raw))
		require.NoError(t, err)
		const told = "HTTP/1.1 100 Continue\r\n\r\n"
		answer := make([]byte, len(told))
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, told, string(answer))
		_, err = conn.Write(raw[:1])
		require.NoError(t, err)
		return conn
	}
	var conns []net.Conn
	var secrets []string
	under := func(secret string) bool { // an upload of the account is on its way
		err := m.CallWith(secret, protocol.ImportArchive.Operation, map[string]any{"dryRun": true}, raw, nil)
		return protocol.CodeOf(err) == protocol.Conflict && strings.Contains(err.Error(), "uploading another archive")
	}
	for i := range 3 {
		handle := fmt.Sprint("slow-", i)
		m.Hosted(handle)
		secrets = append(secrets, m.OwnerToken(handle))
		conns = append(conns, begin(secrets[i]))
		require.True(t, under(secrets[i]))
	}
	require.Equal(t, raw[:2], export(m, map[string]any{"handle": "home"})[:2], "an export is made")
	_, err := m.Imports(raw, map[string]any{"dryRun": true})
	require.NoError(t, err)

	// Who is slow and gets it all here in the end is served.
	_, err = conns[0].Write(raw[1:])
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conns[0]), nil)
	require.NoError(t, err)
	answer.Body.Close()
	require.NotEqual(t, 503, answer.StatusCode)
	require.Eventually(t, func() bool { return !under(secrets[0]) }, time.Minute, 10*time.Millisecond, "and may send another")
	require.NoError(t, conns[1].Close())
	require.Eventually(t, func() bool { return !under(secrets[1]) }, time.Minute, 10*time.Millisecond, "also who has gone")
	require.True(t, under(secrets[2]))
}
