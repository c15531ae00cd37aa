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
	"stoa/protocol/must"
)

// TestArchive_SlowUploads: archives that come a byte now and then hold up nobody
// else's export and import, and an account sends one at a time.
func TestArchive_SlowUploads(t *testing.T) {
	t.Parallel()
	m := nodetest.NewMover(t)
	raw := export(m, map[string]any{"handle": "home"})
	host := strings.TrimPrefix(m.URL, "http://")
	begin := func(secret string) net.Conn { // the node reads the upload when it returns
		conn := must.Get(net.Dial("tcp", host))(t)
		t.Cleanup(func() { conn.Close() })
		must.Get(fmt.Fprintf(conn, "POST /api/owner/import?dryRun=true HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: "+
			"application/gzip\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", host, secret, len(raw)))(t)
		const told = "HTTP/1.1 100 Continue\r\n\r\n"
		answer := make([]byte, len(told))
		must.Get(io.ReadFull(conn, answer))(t)
		require.Equal(t, told, string(answer))
		must.Get(conn.Write(raw[:1]))(t)
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
	must.Get(m.Imports(raw, map[string]any{"dryRun": true}))(t)

	// Who is slow and gets it all here in the end is served.
	must.Get(conns[0].Write(raw[1:]))(t)
	answer := must.Get(http.ReadResponse(bufio.NewReader(conns[0]), nil))(t)
	answer.Body.Close()
	require.NotEqual(t, 503, answer.StatusCode)
	require.Eventually(t, func() bool { return !under(secrets[0]) }, time.Minute, 10*time.Millisecond, "and may send another")
	require.NoError(t, conns[1].Close())
	require.Eventually(t, func() bool { return !under(secrets[1]) }, time.Minute, 10*time.Millisecond, "also who has gone")
	require.True(t, under(secrets[2]))
}
