package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/room/account"
	"stoa/node/room/archive"
	"stoa/node/room/contact"
	"stoa/node/room/credential"
	"stoa/storage"
)

// newArchive makes the room for export and import. chain is nil when none is
// configured.
func newArchive(c Config, db *storage.DB, keys *credential.Keyring, accounts *account.Accounts, client *http.Client, chain *credential.Chain) *archive.Archive {
	a := archive.Archive{
		Base: accounts.Base, Private: c.private(), DB: db, Signer: keys.Ed, Open: keys.OpenAgent, Seal: keys.SealAgent,
		Nodes: nodeKeys(client), Watch: contact.Watch, Spool: spool(c.Data), Named: accounts.Named, Admit: accounts.Admit, Admitted: accounts.Admitted,
		Work: c.ArchiveWork,
	}
	if chain != nil {
		a.Chain = chain
	}
	return archive.New(a)
}

// maxNodeKeys is how many bytes the keys of a node may have.
const maxNodeKeys = 64 << 10

// nodeKeys fetches the keys of another node, from the path where every node serves
// them.
func nodeKeys(client *http.Client) func(context.Context, string) (key.Set, error) {
	return func(ctx context.Context, base string) (key.Set, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+httpsig.DirectoryPath, nil)
		if err != nil {
			return key.Set{}, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return key.Set{}, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Request.URL.Host != req.URL.Host { // a redirect may lead to another host
			return key.Set{}, fmt.Errorf("keys of %s: status %d", base, resp.StatusCode)
		}
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxNodeKeys))
		if err != nil {
			return key.Set{}, err
		}
		return key.ParseSet(raw)
	}
}

// spool opens unnamed files in the data directory: no other process can open them,
// and nothing remains when the process ends.
func spool(dir string) func() (*os.File, error) {
	return func() (*os.File, error) {
		f, err := os.CreateTemp(dir, ".archive-*")
		if err != nil {
			return nil, err
		}
		return f, os.Remove(f.Name())
	}
}
