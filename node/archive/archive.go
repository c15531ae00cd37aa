// Package archive is the room that takes a profile from one node to another:
// everything of it in one file (format stoa.archive/v1, see format.go), written
// from one snapshot and imported whole or not at all. An archive is what its
// bearer says; which of it is believed stands in import.go and SECURITY.md.
package archive

import (
	"context"
	"io"
	"os"
	"sync"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/dispatch"
	"stoa/protocol"
	"stoa/storage"
)

// An Archive exports from and imports into one node. Make it with New.
type Archive struct {
	Base    string // public address of the node, without a slash at the end
	Private bool   // addresses of this machine are taken: development
	DB      *storage.DB
	Signer  key.Pair                                                        // the node's Ed25519 key: signs manifests
	Open    func(k *storage.AgentKey) (key.Pair, error)                     // a private key that the node keeps
	Seal    func(handle string, p key.Pair) ([]byte, error)                 // the opposite
	Chain   integrity.Authority                                             // nil when no chain is configured
	Nodes   func(ctx context.Context, base string) (key.Set, error)         // fetches the keys of another node
	Watch   func(context.Context, *storage.Tx, *storage.StoredThread) error // closes a thread when it falls silent
	Spool   func() (*os.File, error)                                        // a file that nobody else sees and that goes with its closing

	schemas func() *dispatch.Schemas // made when first asked for
	slots   chan struct{}
}

// atOnce is how many archives one process makes or reads at the same time.
const atOnce = 2

// New completes an Archive.
func New(a Archive) *Archive {
	a.slots = make(chan struct{}, atOnce)
	a.schemas = sync.OnceValue(func() *dispatch.Schemas {
		s := dispatch.NewSchemas()
		for _, t := range records { // the registry may be read, not written, by several
			s.Of(t)
		}
		return s
	})
	return &a
}

// enter takes one of the slots, or says that there is none.
func (a *Archive) enter() (leave func(), err error) {
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	default:
		return nil, protocol.Errorf(protocol.Overloaded, "other archives are in the works; try again in a minute")
	}
}

// Export does export_archive.
func (a *Archive) Export(ctx context.Context, c protocol.Caller, in protocol.ExportRequest) (protocol.File, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	if in.Passphrase != "" && (c.Standing == protocol.Signed || !c.May(protocol.ScopeKeys)) {
		return nil, protocol.Errorf(protocol.Forbidden, "private keys are exported for a session, or a token with the scope keys as well; leave the passphrase out to go without them")
	}
	leave, err := a.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := a.Spool()
	if err != nil {
		return nil, err
	}
	if err := a.Write(ctx, f, c.Actor(), handle, in.Passphrase, nil); err != nil {
		f.Close()
		return nil, err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return file{f, size, handle + ".stoa.tar.gz"}, nil
}

type file struct {
	*os.File
	size int64
	name string
}

func (f file) Size() int64  { return f.size }
func (f file) Name() string { return f.name }

// Import does import_archive.
func (a *Archive) Import(ctx context.Context, c protocol.Caller, in protocol.ImportRequest, body io.Reader) (protocol.ImportReport, error) {
	leave, err := a.enter()
	if err != nil {
		return protocol.ImportReport{}, err
	}
	defer leave()
	f, err := a.Spool()
	if err != nil {
		return protocol.ImportReport{}, err
	}
	defer f.Close()
	if _, err := io.Copy(f, body); err != nil {
		return protocol.ImportReport{}, err
	}
	return a.Read(ctx, f, Order{ImportRequest: in, By: c, Limits: OwnerLimits})
}
