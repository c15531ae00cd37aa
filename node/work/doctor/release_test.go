package doctor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/sshsig"
	"stoa/protocol/must"
)

// TestRelease: the newest release is what its checksums name, if the key of the settings signed them.
func TestRelease(t *testing.T) {
	t.Parallel()
	file := func(name string) []byte {
		return must.Get(os.ReadFile(filepath.Join("../../../identity/sshsig/testdata", name)))(t)
	}
	answers := map[string][]byte{"/SHA256SUMS": file("SHA256SUMS"), "/SHA256SUMS.sig": file("sha512.sig")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, there := answers[r.URL.Path]
		if !there {
			w.WriteHeader(404)
		}
		w.Write(body)
	}))
	t.Cleanup(server.Close)
	d := &Doctor{Base: server.URL, Version: "0.1.9"}
	require.Empty(t, d.release(t.Context(), nil), "nobody is asked")
	d.Releases = Releases{server.URL + "/SHA256SUMS", must.Get(sshsig.ParseKey(string(file("key.pub"))))(t)}
	is := func(version, want string) {
		t.Helper()
		d.Version = version
		require.Equal(t, []string{want}, codes(d.release(t.Context(), nil)...), version)
	}
	is("0.1.9", "release-newer")
	require.Contains(t, d.release(t.Context(), nil)[0].Seen, "0.2.0; this is 0.1.9")
	is("0.2.0", "release ok")
	is("0.10.0", "release ok")
	answers["/SHA256SUMS.sig"] = file("other.sig")
	is("0.1.9", "release-unread")
	answers["/SHA256SUMS.sig"] = file("namespace.sig")
	is("0.1.9", "release-unread")
	answers["/SHA256SUMS.sig"] = file("sha512.sig")
	answers["/SHA256SUMS"] = append(file("SHA256SUMS"), '\n')
	is("0.1.9", "release-unread")
	delete(answers, "/SHA256SUMS.sig")
	is("0.1.9", "release-unread")
}
