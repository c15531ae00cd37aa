// Package archive moves a profile from one node to another: it exports everything of a profile
// into one file (format stoa.archive/v1, see format.go), written from one snapshot, and imports
// such a file whole or not at all. An archive is what its bearer says; import.go and SECURITY.md
// say which parts of it are believed.
package archive

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/dispatch"
	"stoa/protocol"
	"stoa/storage"
)

// A Chain answers who may speak for a chain identity. Its errors are *protocol.Error.
type Chain interface {
	integrity.Authority
	// Enrolment is what an enrolment by that key would name now, and the key.
	Enrolment(ctx context.Context, identity, keyid string) (e storage.Enrolment, jwk []byte, err error)
}

// An Archive exports from and imports into one node. Make it with New.
type Archive struct {
	Base    string // public address of the node, without a slash at the end
	Private bool   // accept addresses of this machine: development
	DB      *storage.DB
	Signer  key.Pair                                                        // the node's Ed25519 key: signs manifests
	Open    func(k *storage.AgentKey) (key.Pair, error)                     // a private key that the node keeps
	Seal    func(handle string, p key.Pair) ([]byte, error)                 // the reverse of Open
	Chain   Chain                                                           // nil when no chain is configured
	Nodes   func(ctx context.Context, base string) (key.Set, error)         // fetches the keys of another node
	Watch   func(context.Context, *storage.Tx, *storage.StoredThread) error // closes a thread when it falls silent
	Spool   func() (*os.File, error)                                        // a private temporary file, deleted when it is closed
	// Named is the account of that id, or the one that a profile belongs to.
	Named  func(ctx context.Context, tx *storage.Tx, name string) (storage.Account, error)
	Report Progress // of exports and of ImportFor; may be nil
	// Work is the work factor of the private keys' encryption, the logarithm of scrypt's N to
	// base 2; 0 means workFactor.
	Work int

	slots   chan struct{}
	uploads *uploads
}

// uploads are the accounts whose archive is being received.
type uploads struct {
	sync.Mutex // guards of
	of         map[string]bool
}

const (
	atOnce     = 2                // archives that one process makes or reads at the same time
	maxUploads = 32               // archives being received at the same time; they do not count towards atOnce
	slotWait   = 30 * time.Second // how long a received archive waits to be read
)

// New completes an Archive.
func New(a Archive) *Archive {
	a.slots, a.uploads = make(chan struct{}, atOnce), &uploads{of: map[string]bool{}}
	return &a
}

// recordSchemas returns the schemas of the records, made once: they may be read, not written, by several.
var recordSchemas = sync.OnceValue(func() *dispatch.Schemas {
	s := dispatch.NewSchemas()
	for _, t := range records {
		s.Of(t)
	}
	return s
})

// arrive registers an archive that is being received, one per account. A slow sender holds no slot
// meanwhile.
func (a *Archive) arrive(account string) (arrived func(), err error) {
	u := a.uploads
	u.Lock()
	defer u.Unlock()
	switch {
	case u.of[account]:
		return nil, protocol.Errorf(protocol.Conflict, "this account is uploading another archive; wait until that upload is done, or cancel it")
	case len(u.of) >= maxUploads:
		return nil, protocol.Errorf(protocol.Overloaded, "too many archives are being uploaded; try again in a minute")
	}
	u.of[account] = true
	return func() {
		u.Lock()
		defer u.Unlock()
		delete(u.of, account)
	}, nil
}

// await is enter for a received archive: it waits up to slotWait for a slot.
func (a *Archive) await(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	case <-ctx.Done():
		return a.enter()
	}
}

// enter takes one of the slots. It fails with overloaded when none is free.
func (a *Archive) enter() (leave func(), err error) {
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	default:
		return nil, protocol.Errorf(protocol.Overloaded, "other archives are being processed; try again in a minute")
	}
}

// Export is the operation export_archive.
func (a *Archive) Export(ctx context.Context, c protocol.Caller, in protocol.ExportRequest) (protocol.File, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	if in.Passphrase != "" && (c.Standing == protocol.Signed || !c.May(protocol.ScopeKeys)) {
		return nil, protocol.Errorf(protocol.Forbidden,
			"private keys are exported only for a session or for a token that also has the scope keys; leave the passphrase out to export without them")
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
	if err := a.Write(ctx, f, c.Actor(), handle, in.Passphrase, a.Report); err != nil {
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

// ImportFor does import_for: file is an *os.File, which is read where it is.
func (a *Archive) ImportFor(ctx context.Context, c protocol.Caller, in protocol.ImportOrder, file io.Reader) (protocol.ImportReport, error) {
	f, ok := file.(*os.File)
	if !ok {
		return protocol.ImportReport{}, protocol.Errorf(protocol.InvalidRequest, "the archive must be a file")
	}
	if in.Account != "" {
		if err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			acc, err := a.Named(ctx, tx, in.Account)
			in.Account = acc.ID
			return err
		}); err != nil {
			return protocol.ImportReport{}, err
		}
	}
	return a.Read(ctx, f, Order{ImportRequest: in.ImportRequest, By: c, Limits: OperatorLimits, Vouch: in.Vouch, Account: in.Account, Progress: a.Report})
}

// Import is the operation import_archive.
func (a *Archive) Import(ctx context.Context, c protocol.Caller, in protocol.ImportRequest, body io.Reader) (protocol.ImportReport, error) {
	if c.Account == "" {
		return protocol.ImportReport{}, errNoAccount
	}
	f, leave, err := a.receive(ctx, c.Account, body)
	if err != nil {
		return protocol.ImportReport{}, err
	}
	defer leave()
	defer f.Close()
	return a.Read(ctx, f, Order{ImportRequest: in, By: c, Limits: OwnerLimits})
}

// receive writes the upload into a file, then takes a slot in which to read it.
func (a *Archive) receive(ctx context.Context, account string, body io.Reader) (f *os.File, leave func(), err error) {
	arrived, err := a.arrive(account)
	if err != nil {
		return nil, nil, err
	}
	defer arrived()
	if f, err = a.Spool(); err != nil {
		return nil, nil, err
	}
	if _, err = io.Copy(f, body); err == nil {
		leave, err = a.await(ctx)
	}
	if err != nil {
		f.Close()
	}
	return f, leave, err
}
