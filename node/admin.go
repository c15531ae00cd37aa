package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/node/out/outbound"
	"stoa/node/room/account"
	"stoa/node/room/archive"
	"stoa/node/room/attention"
	"stoa/node/room/board"
	"stoa/node/room/credential"
	"stoa/node/room/directory"
	"stoa/node/room/moderation"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/storage"
)

// An Admin runs operations as the operator on the machine, on a node's database,
// whether the node is running or not.
type Admin struct {
	DB   *storage.DB
	Base string

	Table   *hall.Table
	archive *archive.Archive
}

// OpenAdmin opens the database that the configuration names. The node's public
// address is that of its first start.
func OpenAdmin(ctx context.Context, c Config, log *slog.Logger) (*Admin, error) {
	db, keys, err := openStore(ctx, c, log, false)
	if err != nil {
		return nil, err
	}
	base, err := storedBase(ctx, db)
	if err == nil && base == "" {
		base = c.base(c.Listen)
		err = claimBase(ctx, db, base)
	}
	var a *Admin
	if err == nil {
		a, err = newAdmin(db, keys, base, c)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return a, nil
}

// newAdmin binds the rooms without the doors.
func newAdmin(db *storage.DB, keys *credential.Keyring, base string, c Config) (*Admin, error) {
	quiet := slog.New(slog.DiscardHandler)
	chain, err := credential.NewChain(c.Chain, c.Dev, db, quiet)
	if err != nil {
		return nil, err
	}
	b, accounts := board.New(base, nil), &account.Accounts{Base: base, DB: db, Seal: keys.SealAgent}
	a := &Admin{DB: db, Base: base, Table: hall.New(db, &identity.Gate{}, hall.NewLimits(hall.WideRates()))}
	a.archive = newArchive(c, db, keys, accounts, outbound.New(outboundOptions(c, base)), chain)
	d := directory.New(base, nil)
	d.Sign = (&credential.Signer{Keys: keys}).SignNews
	decides := moderation.New(base, c.limits(), keys.Networks.Of, b.Delete, b.Distribute)
	decides.SetState = d.SetState
	for _, r := range []room{
		decides, &operate.Operate{Base: base}, d, accounts, a.archive, keys,
	} {
		r.Bind(a.Table)
	}
	enrol := credential.Enroller{DB: db, Chain: func() (*credential.Chain, error) {
		if len(c.Chain) == 0 {
			return nil, fmt.Errorf("%w: name the chain with --chain", ErrConfig)
		}
		return credential.NewChain(c.Chain, c.Dev, db, quiet)
	}}
	return a, a.bind(b, d, accounts, enrol)
}

// bind binds the operations that have no door to their rooms.
func (a *Admin) bind(b *board.Board, d *directory.Directory, accounts *account.Accounts, enrol credential.Enroller) error {
	t := a.Table
	hall.Bind(t, protocol.PutProfile, d.PutFor)
	hall.Bind(t, protocol.DropProfile, d.Delete)
	hall.Bind(t, protocol.KeepKey, accounts.KeepKey)
	hall.Bind(t, protocol.PutKeyDirectory, credential.Presigned{Base: a.Base}.Put)
	hall.BindPlain(t, protocol.EnrolIdentity, enrol.Enrol)
	hall.Bind(t, protocol.RenewEnrolments, credential.Renew)
	hall.Bind(t, protocol.LinkProfile, accounts.LinkProfile)
	hall.Bind(t, protocol.UnlinkProfile, accounts.UnlinkProfile)
	hall.Bind(t, protocol.SetAccountMail, accounts.SetMail)
	hall.Bind(t, protocol.MakeOperatorLink, accounts.OperatorLink)
	hall.Bind(t, protocol.GrantToken, accounts.GrantToken)
	hall.Bind(t, protocol.TokensOf, accounts.TokensOf)
	hall.BindFile(t, protocol.ImportFor, a.archive.ImportFor)
	hall.Bind(t, protocol.NewEpoch, b.NewEpoch)
	hall.Bind(t, protocol.TracePayment, (&attention.Attention{Base: a.Base}).Trace)
	return t.Complete(protocol.LocalOperations())
}

// Do runs an operation as the operator on the machine, as a door of the node would:
// with all checks, in one transaction, and with an entry in the audit log.
func Do[In, Out any](ctx context.Context, a *Admin, op protocol.Op[In, Out], in In) (out Out, err error) {
	res, err := a.invoke(ctx, op.Operation, in, nil)
	if err != nil {
		return out, err
	}
	return res.Value.(Out), nil
}

// Operate is Do for an operation that is known only at run time. Its result is decoded
// into out; nil discards it.
func (a *Admin) Operate(ctx context.Context, op *protocol.Operation, in, out any) error {
	res, err := a.invoke(ctx, op, in, nil)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(res.JSON, out)
}

func (a *Admin) invoke(ctx context.Context, op *protocol.Operation, in any, file io.Reader) (hall.Result, error) {
	args, err := json.Marshal(in)
	if err != nil {
		return hall.Result{}, err
	}
	return a.Table.Invoke(ctx, hall.Request{Op: op.Name, Args: args, Door: "operator", Upload: file, Evidence: identity.Evidence{Operator: true}})
}

// Import imports a profile from an archive file. progress may be nil.
func (a *Admin) Import(ctx context.Context, f *os.File, in protocol.ImportOrder, progress archive.Progress) (out protocol.ImportReport, err error) {
	a.archive.Report = progress
	res, err := a.invoke(ctx, protocol.ImportFor.Operation, in, f)
	if err != nil {
		return out, err
	}
	return res.Value.(protocol.ImportReport), nil
}

// Export makes an archive of all data of a profile, which the caller reads and
// closes. progress may be nil.
func (a *Admin) Export(ctx context.Context, in protocol.ExportRequest, progress archive.Progress) (protocol.File, error) {
	a.archive.Report = progress
	return Do(ctx, a, protocol.ExportArchive, in)
}

// Close closes the database, if OpenAdmin opened it.
func (a *Admin) Close() error { return a.DB.Close() }

// Admin runs operations as the operator on a node of this process.
func (n *Node) Admin() *Admin {
	a, err := newAdmin(n.DB, n.Keys, n.Base, n.Config)
	if err != nil {
		panic("node: " + err.Error()) // New has accepted these settings
	}
	return a
}

// Follow makes a running node follow another at once.
func (n *Node) Follow(ctx context.Context, address string) error {
	_, err := n.federation.Follow(ctx, address)
	return err
}

// AcceptedPeers counts the boards that accepted our follow.
func (n *Node) AcceptedPeers(ctx context.Context) (accepted int, err error) {
	err = n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.Subscriptions().List(ctx)
		for _, s := range all {
			if s.State == storage.SubscriptionAccepted {
				accepted++
			}
		}
		return err
	})
	return accepted, err
}

// SeesKey reports whether the chain, as this node reads it, grants a key for an
// identity.
func (n *Node) SeesKey(ctx context.Context, identity, keyid string) bool {
	if n.Chain == nil {
		return false
	}
	_, err := n.Chain.Grant(ctx, identity, keyid)
	return err == nil
}
