package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var quiet = slog.New(slog.DiscardHandler)

func putPerson(t *testing.T, a *node.Admin, handle, headline string) {
	t.Helper()
	in := map[string]any{"handle": handle, "name": "Asha", "kind": "person", "headline": headline}
	require.NoError(t, a.Operate(t.Context(), protocol.PutProfile.Operation, in, nil))
}

func headline(t *testing.T, a *node.Admin, handle string) string {
	p, err := node.Do(t.Context(), a, protocol.GetAgentProfile, protocol.HandleInput{Handle: handle})
	if protocol.CodeOf(err) == protocol.NotFound {
		return ""
	}
	require.NoError(t, err)
	return p.Headline
}

// onAdmin opens the database of a stopped node for a while.
func onAdmin(t *testing.T, c node.Config, do func(a *node.Admin)) {
	t.Helper()
	a := must.Get(node.OpenAdmin(t.Context(), c, quiet))(t)
	defer func() { require.NoError(t, a.Close()) }()
	do(a)
}

func stopped(t *testing.T, at storage.Config) node.Config {
	return stoppedAt(t, at, "https://n1.example")
}

func stoppedAt(t *testing.T, at storage.Config, base string) node.Config {
	c := node.Config{Listen: "127.0.0.1:0", BaseURL: base, Data: t.TempDir(), Database: at.URL, Version: "test", ArchiveWork: 10}
	c.BackupDir = filepath.Join(t.TempDir(), "backups")
	n := must.Get(node.New(t.Context(), c, quiet))(t)
	require.NoError(t, n.Close())
	return c
}

// restored restores a node. PostgreSQL ends sessions a moment after their connections.
func restored(t *testing.T, c node.Config, from node.Source) (out node.Restored) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		out, err = node.Restore(t.Context(), c, from, quiet)
		return err == nil || !strings.Contains(err.Error(), "in use")
	}, time.Minute, 100*time.Millisecond)
	require.NoError(t, err)
	return out
}

// TestRestore puts a node back as it was, out of each form of a backup.
func TestRestore(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		ctx, c := t.Context(), stopped(t, at)
		id := must.Get(age.GenerateX25519Identity())(t)
		identity := filepath.Join(t.TempDir(), "identity")
		require.NoError(t, os.WriteFile(identity, []byte("# made today\n"+id.String()+"\n"), 0o600))
		file, sealed := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "sealed")
		onAdmin(t, c, func(a *node.Admin) {
			putPerson(t, a, "asha", "before")
			s, err := a.BackUp(ctx, c, quiet, nil)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(s.Name, "n1.example-"))
			require.Equal(t, s.Name, s.Checked)
			require.NoError(t, a.Backup(ctx, c, file, nil))
			require.Error(t, a.Backup(ctx, c, filepath.Join(t.TempDir(), "no", "such", "folder"), nil))
			to := c
			to.BackupRecipients = []string{id.Recipient().String()}
			require.NoError(t, a.Backup(ctx, to, sealed, nil))
		})
		_, err := node.Restore(ctx, c, node.Source{From: sealed}, quiet)
		require.ErrorContains(t, err, "--identity")
		day := time.Now().UTC().Format(time.DateOnly)
		for name, from := range map[string]node.Source{"place": {}, "day": {Date: day}, "folder": {From: c.BackupDir}, "file": {From: file},
			"sealed": {From: sealed, Identity: identity}} {
			onAdmin(t, c, func(a *node.Admin) {
				putPerson(t, a, "asha", "after")
				putPerson(t, a, "ravi", "after")
			})
			out := restored(t, c, from)
			require.Equal(t, "https://n1.example", out.Node)
			require.NotEmpty(t, out.Kept, "what was there is kept")
			onAdmin(t, c, func(a *node.Admin) {
				require.Equal(t, "before", headline(t, a, "asha"), name)
				require.Empty(t, headline(t, a, "ravi"), name)
				require.NoError(t, a.DB.Check(ctx))
			})
			if at.URL != "" {
				time.Sleep(1100 * time.Millisecond) // the schema that is kept has the second in its name
			}
		}
		for what, from := range map[string]node.Source{"no such backup": {Date: "2020-01-01"}, "no such file": {From: file + "x"},
			"no backup of a node": {From: filepath.Join(c.Data, "master.key")}, "no identities": {From: sealed, Identity: file}} {
			_, err := node.Restore(ctx, c, from, quiet)
			require.ErrorContains(t, err, what)
		}
		n := must.Get(node.New(ctx, c, quiet))(t)
		require.NoError(t, n.Close())
	})
}

// TestRestore_Parts: the files of old posts come back with a node, and with a profile.
func TestRestore_Parts(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		ctx, c := t.Context(), stopped(t, at)
		id := must.Get(age.GenerateX25519Identity())(t)
		identity := filepath.Join(t.TempDir(), "identity")
		require.NoError(t, os.WriteFile(identity, []byte(id.String()+"\n"), 0o600))
		c.BackupRecipients = []string{id.Recipient().String()}
		month := time.Date(2025, 1, 5, 0, 0, 0, 0, time.UTC)
		post := protocol.NewID(protocol.PostID, month)
		text := func(a *node.Admin) (body string) {
			require.NoError(t, a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Posts().ByID(ctx, post)
				body = p.Body
				return err
			}))
			return body
		}
		onAdmin(t, c, func(a *node.Admin) {
			putPerson(t, a, "asha", "before")
			require.NoError(t, a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Posts().Insert(ctx, &protocol.StoredPost{State: protocol.Hidden, Board: a.Base + "/ap/board", Post: protocol.Post{
					ID: post, URI: a.Base + "/ap/posts/" + post,
					URL: a.Base + "/board/" + post, Kind: protocol.PostKinds[0], Title: "Paper", Body: "of January", CreatedAt: month,
					Author: protocol.Author{Name: "Asha", Handle: new("asha"), Method: protocol.BySession}}})
			}))
			require.NoError(t, a.Detach(ctx, 202501, nil))
			must.Get(a.BackUp(ctx, c, quiet, nil))(t)
			parts := must.Get(a.Parts(ctx))(t)
			require.EqualValues(t, 1, parts[0].Posts)
			require.NoError(t, os.RemoveAll(filepath.Dir(parts[0].File)))
		})
		_, err := node.New(ctx, c, quiet)
		require.ErrorContains(t, err, "posts-2025-01.db: bring the file back")
		out := restored(t, c, node.Source{Identity: identity})
		require.Equal(t, 1, out.Parts)
		require.Empty(t, out.Lacks)
		onAdmin(t, c, func(a *node.Admin) {
			require.Equal(t, "of January", text(a))
			require.NoError(t, a.DB.CheckParts(ctx))
			_, err := node.Do(ctx, a, protocol.DropProfile, protocol.HandleInput{Handle: "asha"})
			require.NoError(t, err)
			require.NoError(t, a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Posts().SetState(ctx, post, protocol.Deleted, "")
			}))
			require.Empty(t, text(a))
		})
		n := must.Get(node.New(ctx, c, quiet))(t)
		require.NoError(t, n.Close())
	})
}

// TestRestore_OtherMaster: a backup that the master key does not open is refused before anything is replaced.
func TestRestore_OtherMaster(t *testing.T) {
	t.Parallel()
	one, two := stopped(t, storage.Config{}), stopped(t, storage.Config{})
	onAdmin(t, one, func(a *node.Admin) { must.Get(a.BackUp(t.Context(), one, quiet, nil))(t) })
	before := must.Get(os.ReadDir(two.Data))(t)
	_, err := node.Restore(t.Context(), two, node.Source{From: one.BackupDir}, quiet)
	require.ErrorContains(t, err, "is this the master key that sealed the database?")
	require.Len(t, must.Get(os.ReadDir(two.Data))(t), len(before))
	onAdmin(t, two, func(*node.Admin) {})
}

// TestRestoreProfile brings one profile back while the node runs, which may be a node without TLS: after its deletion, or as it was.
func TestRestoreProfile(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		ctx, c := t.Context(), stoppedAt(t, at, "http://127.0.0.1:8080")
		onAdmin(t, c, func(a *node.Admin) {
			putPerson(t, a, "asha", "before")
			putPerson(t, a, "ravi", "before")
			acc, err := node.Do(ctx, a, protocol.OpenAccount, protocol.NewAccount{Name: "Asha", Handles: []string{"asha"}})
			require.NoError(t, err)
			must.Get(a.BackUp(ctx, c, quiet, nil))(t)

			_, err = a.RestoreProfile(ctx, c, node.Source{}, "asha", false)
			require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
			require.ErrorContains(t, err, "--replace")
			putPerson(t, a, "asha", "after")
			putPerson(t, a, "ravi", "after")
			out, err := a.RestoreProfile(ctx, c, node.Source{}, "asha", true)
			require.NoError(t, err)
			require.Equal(t, "replaced", out.Report.Profile)
			require.Equal(t, "before", headline(t, a, "asha"))

			_, err = node.Do(ctx, a, protocol.DropProfile, protocol.HandleInput{Handle: "asha"})
			require.NoError(t, err)
			out, err = a.RestoreProfile(ctx, c, node.Source{}, "asha", false)
			require.NoError(t, err)
			require.Equal(t, "created", out.Report.Profile)
			require.NotEmpty(t, out.Notes)
			require.Equal(t, "before", headline(t, a, "asha"))
			require.Equal(t, "after", headline(t, a, "ravi"), "nobody else is changed")
			require.NoError(t, a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				owner, err := tx.Accounts().OfProfile(ctx, "asha")
				require.Equal(t, acc.Account.ID, owner.ID, "it is its owner's again")
				return err
			}))
			_, err = a.RestoreProfile(ctx, c, node.Source{}, "nobody", false)
			require.Error(t, err)
			require.NoError(t, a.DB.Check(ctx))
		})
		left, err := filepath.Glob(filepath.Join(c.Data, ".*"))
		require.NoError(t, err)
		require.Empty(t, left, "nothing of the backup stays in the data directory")
	})
}

// TestBackup_Served: a node makes its first backup by itself, says so on Health, and its metrics tell the age.
func TestBackup_Served(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		c := stopped(t, at)
		n := must.Get(node.New(t.Context(), c, quiet))(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		var v protocol.Health
		require.Eventually(t, func() bool {
			res, err := n.Table.Invoke(ctx, hall.Request{Op: "read_health", Args: []byte("{}"), Door: "operator", Evidence: identity.Evidence{Operator: true}})
			require.NoError(t, err)
			v = res.Value.(protocol.Health)
			return v.Backup.CheckedAt != nil
		}, 2*time.Minute, 100*time.Millisecond)
		require.Equal(t, c.BackupDir, v.Backup.Place)
		require.Equal(t, v.Backup.MadeAt, v.BackupAt)
		require.FileExists(t, filepath.Join(c.BackupDir, v.Backup.Name))
		require.Positive(t, v.Backup.Bytes)
		require.NotNil(t, v.Backup.NextAt)
		require.Empty(t, v.Backup.LastError)
		for _, metric := range []string{"stoa_backup_age_seconds ", "stoa_backup_checked_age_seconds ", "stoa_backup_failures_total 0"} {
			require.Contains(t, (&nodetest.House{Node: n, T: t}).Metrics(), metric)
		}
		stop()
		require.NoError(t, <-done)
	})
}

func TestBackup_Settings(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("very-secret\n"), 0o600))
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(v, "")
	}
	for what, change := range map[string]func(*node.Config){
		"backup-recipient":                func(c *node.Config) { c.BackupRecipients = []string{"age1x"} },
		"that is a secret identity":       func(c *node.Config) { c.BackupRecipients = []string{"AGE-SECRET-KEY-1X"} },
		"neither a directory nor s3":      func(c *node.Config) { c.BackupDir = "ftp://x/y" },
		"is not s3://bucket/prefix":       func(c *node.Config) { c.BackupDir = "s3:///y" },
		"name the access key":             func(c *node.Config) { c.BackupDir = "s3://b/y" },
		"backup-s3-secret":                func(c *node.Config) { c.BackupDir, c.BackupKey, c.BackupSecret = "s3://b/y", "id", secret+"x" },
		"backup-s3-endpoint must be":      func(c *node.Config) { c.BackupDir, c.BackupEndpoint = "s3://b/y", "ftp://x" },
		"backup-at":                       func(c *node.Config) { c.BackupAt = "25:00" },
		"backup-check-days: must be from": func(c *node.Config) { c.BackupCheck = 8 },
		"name a place for the backups": func(c *node.Config) {
			c.BackupDir, c.BackupRecipients = "", []string{must.Get(age.GenerateX25519Identity())(t).Recipient().String()}
		},
	} {
		c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), BackupDir: "x"}
		change(&c)
		require.ErrorContains(t, c.Validate(), what)
	}
	c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), BackupDir: "s3://b/y", BackupKey: "id", BackupSecret: secret}
	require.NoError(t, c.Validate())
	require.NotContains(t, fmt.Sprintf("%+v", c), "very-secret", "a configuration names the file only")
}
