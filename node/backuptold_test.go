package node_test

import (
	"bytes"
	"io"
	"log/slog"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/mail"
	"stoa/node/out/mail/mailtest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestBackup_Told: operators, and nobody else, get one mail when backups fail, however often they do, and one when they work again.
func TestBackup_Told(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		server := mailtest.Start(t)
		h := nodetest.New(t, change, func(c *node.Config) {
			c.SMTP, c.SMTPSecurity, c.MailFrom = server.Addr, mail.Plain, "stoa@node.example"
		})
		h.Work()
		h.Hosted("asha")
		h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		for _, name := range []string{"ravi", "mira"} {
			_, _, err := h.Admin().OpenAccount(t.Context(), name, protocol.RoleOperator, name+"@example.org", nil)
			require.NoError(t, err)
		}
		dir := filepath.Join(t.TempDir(), "backups")
		require.NoError(t, os.WriteFile(dir, nil, 0o600)) // no directory can be there
		c := h.Config
		c.BackupDir = dir
		backup := func() error {
			_, err := h.Admin().BackUp(t.Context(), c, slog.New(slog.DiscardHandler), nil)
			return err
		}
		letters := func(subject, text string) {
			t.Helper()
			var to []string
			for range 2 {
				m := must.Get(netmail.ReadMessage(bytes.NewReader(server.Next(t))))(t)
				to = append(to, m.Header.Get("To"))
				require.Contains(t, m.Header.Get("Subject"), subject)
				body := string(must.Get(io.ReadAll(quotedprintable.NewReader(m.Body)))(t))
				require.Contains(t, body, text)
				require.Contains(t, body, "/account/node")
			}
			require.ElementsMatch(t, []string{"<ravi@example.org>", "<mira@example.org>"}, to)
		}
		require.NoError(t, os.Remove(dir))
		require.NoError(t, backup())
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.WriteFile(dir, nil, 0o600))
		require.Error(t, backup())
		require.Error(t, backup())
		letters("The backup of", "not a directory")
		require.NoError(t, os.Remove(dir))
		require.NoError(t, backup())
		require.NoError(t, backup())
		letters("works again", ".tar.gz")
		require.Error(t, func() error { c.BackupDir = filepath.Join(h.Config.Data, "master.key"); return backup() }())
		letters("The backup of", "What was wrong")
		require.Empty(t, server.Rest(), "once each time")
	})
}
