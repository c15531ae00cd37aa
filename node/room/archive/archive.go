// Package archive moves a profile from one node to another: it exports everything of a profile
// into one file (format stoa.archive/v1, see format.go), written from one snapshot, and imports
// such a file whole or not at all. An archive is what its bearer says; import.go and docs/DESIGN.md
// say which parts of it are believed.
package archive

import (
	"context"
	"io"
	"os"
	"sync"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/hall"
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
	Buyer   func(*storage.StoredOrder) (protocol.OrderBuyer, error)         // opens who bought
	Watch   func(context.Context, *storage.Tx, *storage.StoredThread) error // closes a thread when it falls silent
	Spool   func() (*os.File, error)                                        // a private temporary file, deleted when it is closed
	LinkKey []byte                                                          // makes the tickets of links to archives
	// Picture makes a picture anew that another node made.
	Picture func(ctx context.Context, raw []byte) (*storage.PictureFile, error)
	// Admit returns the state of a profile that is new here, or why it may not come; Admitted counts that it came.
	Admit    func(ctx context.Context, tx *storage.Tx, by protocol.Caller, handle string) (protocol.ProfileState, error)
	Admitted func(ctx context.Context, tx *storage.Tx, by protocol.Caller) error
	// Named is the account of that id, or the one that a profile belongs to.
	Named  func(ctx context.Context, tx *storage.Tx, name string) (storage.Account, error)
	Report Progress // of exports and of ImportFor; may be nil
	// Work is the work factor of the private keys' encryption, the logarithm of scrypt's N to
	// base 2; 0 means workFactor.
	Work int

	uploads *hall.Uploads
}

// New completes an Archive.
func New(a Archive) *Archive {
	a.uploads = hall.NewUploads("archive", a.Spool)
	return &a
}

// recordSchemas returns the schemas of the records, made once: they may be read, not written, by several.
var recordSchemas = sync.OnceValue(func() *hall.Schemas {
	s := hall.NewSchemas()
	for _, t := range records {
		s.Of(t)
	}
	return s
})

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
	return a.made(ctx, c.Actor(), handle, in.Passphrase)
}

// made makes the archive of a profile for an account, or another actor, one at a time.
func (a *Archive) made(ctx context.Context, by, handle, passphrase string) (protocol.File, error) {
	leave, err := a.uploads.Export(by)
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := a.Spool()
	if err != nil {
		return nil, err
	}
	if err := a.Write(ctx, f, by, handle, passphrase, a.Report); err != nil {
		f.Close()
		return nil, err
	}
	return hall.Made(f, handle+".stoa.tar.gz")
}

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
	f, leave, err := a.uploads.Receive(ctx, c.Account, body)
	if err != nil {
		return protocol.ImportReport{}, err
	}
	defer leave()
	defer f.Close()
	return a.Read(ctx, f, Order{ImportRequest: in, By: c, Limits: OwnerLimits})
}
