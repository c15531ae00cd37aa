package node_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/out/mail"
)

// TestCheckMail: the lines that it prints, once they are in the DNS, leave no fault.
func TestCheckMail(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dkim.pem")
	require.NoError(t, mail.WriteKey(file))
	c := node.Config{SMTP: "mail.example.org:587", SMTPSecurity: mail.StartTLS, MailFrom: "stoa@n1.example", DKIMKey: file, DKIMSelector: "s1"}
	dns := map[string][]string{}
	lookup := func(_ context.Context, name string) ([]string, error) { return dns[name], nil }
	for _, fault := range []string{"there is no such record: add it", ""} {
		records, err := c.CheckMail(t.Context(), lookup)
		require.NoError(t, err)
		require.Len(t, records, 3)
		for _, r := range records {
			require.Equal(t, fault, r.Fault, r.Purpose)
			dns[r.Name] = []string{r.Want}
		}
	}
	for name, change := range map[string]func(*node.Config){
		"no server": func(c *node.Config) { c.SMTP = "" }, "no address": func(c *node.Config) { c.MailFrom = "" },
		"no selector": func(c *node.Config) { c.DKIMSelector = "" },
		"no such key": func(c *node.Config) { c.DKIMKey += ".none" },
	} {
		bad := c
		change(&bad)
		_, err := bad.CheckMail(t.Context(), lookup)
		require.ErrorIs(t, err, node.ErrConfig, name)
	}
}
