package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/archive"
	"stoa/node/contact"
	"stoa/node/credential"
	"stoa/node/outbound"
	"stoa/protocol"
	"stoa/storage"
)

// newArchive makes the room of export and import. A nil chain is none.
func newArchive(c Config, db *storage.DB, keys *credential.Keyring, base string, client *http.Client, chain *credential.Chain) *archive.Archive {
	private := c.AllowPrivatePeers || c.Dev
	a := archive.Archive{
		Base: base, Private: private, DB: db, Signer: keys.Ed, Open: keys.OpenAgent, Seal: keys.SealAgent,
		Nodes: nodeKeys(client), Watch: contact.Watch, Spool: spool(c.Data),
	}
	if chain != nil {
		a.Chain = chain
	}
	return archive.New(a)
}

// maxNodeKeys is how many bytes the keys of a node may have.
const maxNodeKeys = 64 << 10

// nodeKeys fetches the keys of another node, from where every node serves them.
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
		if resp.StatusCode != http.StatusOK || resp.Request.URL.Host != req.URL.Host { // redirects speak for another host
			return key.Set{}, fmt.Errorf("keys of %s: status %d", base, resp.StatusCode)
		}
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxNodeKeys))
		if err != nil {
			return key.Set{}, err
		}
		return key.ParseSet(raw)
	}
}

// spool opens files in the data directory that have no name: nobody finds them,
// and nothing of them is left behind whenever the process ends.
func spool(dir string) func() (*os.File, error) {
	return func() (*os.File, error) {
		f, err := os.CreateTemp(dir, ".archive-*")
		if err != nil {
			return nil, err
		}
		return f, os.Remove(f.Name())
	}
}

// openArchive is the room beside a node: it may ask the chain that the
// configuration names, and other nodes for their keys.
func (a *Admin) openArchive(log *slog.Logger) (*archive.Archive, error) {
	if a.archive != nil {
		return a.archive, nil
	}
	chain, err := credential.NewChain(a.config.Chain, a.config.Dev, a.DB, log)
	if err != nil {
		return nil, err
	}
	client := outbound.New(outbound.Options{AllowPrivate: a.config.AllowPrivatePeers || a.config.Dev, UserAgent: "stoa/" + a.config.Version + " (+" + a.Base + ")"})
	a.archive = newArchive(a.config, a.DB, a.keys, a.Base, client, chain)
	return a.archive, nil
}

// Export writes everything of a profile as one archive.
func (a *Admin) Export(ctx context.Context, w io.Writer, handle, passphrase string, progress archive.Progress) error {
	room, err := a.openArchive(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return room.Write(ctx, w, "operator", handle, passphrase, progress)
}

// Import brings a profile here from an archive. account, which may be "", is whom
// a new profile belongs to: an account's id, or a profile of it. With vouch, the
// operator answers for it that the archive is what it says.
func (a *Admin) Import(ctx context.Context, f *os.File, in protocol.ImportRequest, account string, vouch bool, progress archive.Progress) (protocol.ImportReport, error) {
	room, err := a.openArchive(slog.New(slog.DiscardHandler))
	if err != nil {
		return protocol.ImportReport{}, err
	}
	if account != "" {
		if err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			acc, err := a.accounts.Named(ctx, tx, account)
			account = acc.ID
			return err
		}); err != nil {
			return protocol.ImportReport{}, err
		}
	}
	return room.Read(ctx, f, archive.Order{
		ImportRequest: in, By: protocol.Caller{Standing: protocol.Operator}, Limits: archive.OperatorLimits,
		Vouch: vouch, Account: account, Progress: progress,
	})
}
