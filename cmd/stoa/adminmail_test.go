package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/out/mail"
)

// TestAdminMail makes a key and prints the lines for the DNS.
func TestAdminMail(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dkim.pem")
	out, errs, code := typed(t, "", "admin", "mail", "key", file)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, file+"\n", out)
	_, errs, code = typed(t, "", "admin", "mail", "key", file)
	require.NotEqual(t, exitDone, code, "an existing key is not overwritten")
	require.Contains(t, errs, "exist")
	_, errs, code = typed(t, "", "admin", "mail", "check")
	require.NotEqual(t, exitDone, code)
	require.Contains(t, errs, "give smtp and mail-from")

	var b bytes.Buffer
	records := []mail.Record{{Purpose: "SPF", Name: "n1.example", Want: "v=spf1 mx -all"}, {Purpose: "DMARC", Name: "_dmarc.n1.example", Fault: "add it"}}
	require.NoError(t, new(adminCmd).mailRecords(&world{stdout: &b}, records))
	require.Equal(t, "SPF    ok\n       n1.example. IN TXT \"v=spf1 mx -all\"\nDMARC  add it\n", b.String())
	b.Reset()
	require.NoError(t, (&adminCmd{JSON: true}).mailRecords(&world{stdout: &b}, records[:1]))
	const want = `{"items": [{"purpose": "SPF", "name": "n1.example", "found": [], "fault": "", "line": "n1.example. IN TXT \"v=spf1 mx -all\""}]}`
	require.JSONEq(t, want, b.String())
}
