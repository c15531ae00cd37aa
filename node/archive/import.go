package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// What is believed of an archive. Its bearer may have written it, so:
//
//   - Texts, counts and sizes are held to the rules of fresh input.
//   - The profile is the bearer's, who may claim what an owner may.
//   - A key is shown to be the bearer's by its private half. Only such keys prove
//     posts, and only with one is a chain identity enrolled, when the chain vouches.
//   - A post says which node made it. It is taken only when that node's signature
//     on the manifest verifies with a key that the node serves, and it is verified
//     only by its author's own signature: with a key of the bearer's, or with one
//     that the chain grants to the identity that was enrolled.
//   - Who wrote in threads is the other node's word: nobody in them is verified.
//
// The operator may vouch for an archive: then it is the profile's own, and the
// node's that it names.

// An Order is an import with who asks for it.
type Order struct {
	protocol.ImportRequest
	By       protocol.Caller // an account, or the operator
	Limits   Limits
	Vouch    bool   // with an operator: the archive is the profile's and its node's, on the operator's word
	Account  string // with an operator: the account that a new profile belongs to, "" none
	Progress Progress
}

func (o *Order) operator() bool { return o.By.Standing == protocol.Operator }

var errNoAccount = protocol.Errorf(protocol.Forbidden, "an import is an account's or the operator's")

// Read imports an archive. It is read three times: to check it whole and to ask
// other machines what must be asked; for the profile and what is small, which
// come in one transaction; and for everything else, which follows in many. From
// the first on the import is kept in the database, and what is left is finished
// (resume.go): in the end all of it is here, or nothing.
func (a *Archive) Read(ctx context.Context, f *os.File, o Order) (protocol.ImportReport, error) {
	if o.operator() != (o.By.Account == "") || o.Vouch && !o.operator() {
		return protocol.ImportReport{}, errNoAccount
	}
	im := &importing{Archive: a, Order: o, asked: map[grant]answer{}}
	if err := im.inspect(ctx, f); err != nil {
		return protocol.ImportReport{}, err
	}
	if o.DryRun {
		return im.dryRun(ctx, f)
	}
	id, holder := protocol.NewID(protocol.ImportID, time.Now()), rand.Text()
	if err := im.stage(ctx, f, id, holder); err != nil {
		return protocol.ImportReport{}, err
	}
	if err := im.begin(ctx, id); err != nil {
		return protocol.ImportReport{}, errors.Join(err, a.deletePieces(ctx, id, true))
	}
	if !o.operator() { // a client that has gone does not stop it
		ctx = context.WithoutCancel(ctx)
	}
	report, err := a.finish(ctx, id, holder, o.Progress)
	if err != nil && !errors.Is(err, errGone) {
		err = &protocol.Error{Code: protocol.Overloaded, Detail: "the profile is here and the rest of the archive is not yet; the node goes on with it by itself", RetryAfter: time.Minute, Err: err}
	}
	return report, err
}

// importing is one import on its way.
type importing struct {
	*Archive
	Order
	manifest *manifest
	host     string // of the node that made the archive
	handle   string // of the profile here
	signed   bool   // that node's signature verifies
	why      string // why not
	profile  profileRecord
	private  map[string]key.Pair // by thumbprint: keys whose private half came along
	public   map[string]crypto.PublicKey
	sum      []byte                      // SHA-256 of the archive
	proven   map[string]crypto.PublicKey // own, once everything was looked at
	erc8004  string                      // the identity to enrol, "" none
	enrols   storage.Enrolment           // with erc8004: what the chain says of it
	refusal  string                      // why there is none

	enrolsKey []byte // with erc8004: the key as the chain has it
	asked     map[grant]answer
	asking    bool // the chain may be asked

	report protocol.ImportReport
	open   *openThread
}

// inspect checks the archive whole, and asks the node it names and the chain.
func (im *importing) inspect(ctx context.Context, f *os.File) error {
	im.asking, im.public = true, map[string]crypto.PublicKey{}
	begin := func(m *manifest, raw []byte, sig signature) error {
		if err := im.setOrigin(m); err != nil {
			return err
		}
		if im.handle = m.Handle; im.As != "" {
			im.handle = im.As
		}
		im.signed, im.why = im.checkSignature(ctx, raw, sig)
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	err := walk(io.TeeReader(f, sum), im.Limits, begin, func(r record) error { return im.checkRecord(ctx, r) }, im.Archive)
	if err != nil {
		return err
	}
	im.sum = sum.Sum(nil)
	if im.open != nil && im.open.got != im.open.want {
		return refused("a thread lacks messages")
	}
	if err := im.askChain(ctx); err != nil { // an archive without posts has not asked yet
		return err
	}
	proven := map[string]crypto.PublicKey{}
	for keyid := range im.public {
		if own := im.provenKey(keyid); own != nil {
			proven[keyid] = own
		}
	}
	im.proven, im.asking, im.open = proven, false, nil
	return nil
}

// setOrigin notes what the manifest says the archive is, and which node made it.
func (im *importing) setOrigin(m *manifest) error {
	u, err := url.Parse(m.Node)
	if err != nil || u.Host == "" || m.Node != u.Scheme+"://"+u.Host || u.Host != strings.ToLower(u.Host) ||
		u.Scheme != "https" && !(im.Private && u.Scheme == "http") {
		return refused("node is not the base address of a node")
	}
	im.manifest, im.host = m, u.Host
	return nil
}

// checkSignature asks the node that is named as the maker whether it is.
func (im *importing) checkSignature(ctx context.Context, raw []byte, sig signature) (ok bool, why string) {
	if im.Vouch {
		return true, ""
	}
	if im.manifest.Node == im.Base {
		if sig.KeyID != im.Signer.Thumbprint() || key.VerifyJWS(im.Signer.Public(), raw, sig.Protected, sig.Signature) != nil {
			return false, "the archive does not bear this node's signature"
		}
		return true, ""
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	set, err := im.Nodes(ctx, im.manifest.Node)
	if err != nil {
		return false, "the keys of " + im.host + " could not be read"
	}
	public, found := set.Find(sig.KeyID)
	if !found || key.VerifyJWS(public.Key, raw, sig.Protected, sig.Signature) != nil {
		return false, "the signature of " + im.host + " on the archive does not verify"
	}
	return true, ""
}

// checkRecord checks one record and learns what the transaction must know before.
func (im *importing) checkRecord(ctx context.Context, r record) error {
	switch r.file {
	case profileFile:
		if err := im.decode(r, &im.profile); err != nil {
			return err
		}
		d := &im.profile.Draft
		if d.Handle != im.manifest.Handle {
			return refused("the profile is @%s and the manifest says @%s", protocol.CleanText(d.Handle), im.manifest.Handle)
		}
		d.Handle, d.Listed = im.handle, nil
		if faults := d.Check(); len(faults) > 0 {
			return protocol.Invalid(faults...)
		}
		return nil
	case merchantFile:
		var m merchantRecord
		if err := im.decode(r, &m); err != nil {
			return err
		}
		if im.profile.Draft.Kind != protocol.Business {
			return refused("a person has no merchant record")
		}
		if faults := m.Record.Check(); len(faults) > 0 {
			return protocol.Invalid(faults...)
		}
		if len(m.Record.Hours)+len(m.Record.ExceptionHours) > 0 && m.Record.Timezone == "" && im.profile.Draft.Timezone == "" {
			return refused("hours need a time zone")
		}
		return nil
	case notifyFile:
		return im.decode(r, &protocol.NotifyDraft{})
	case keysFile:
		_, _, err := im.key(r)
		return err
	case privateFile:
		return im.unlock(r)
	case postsFile:
		if err := im.askChain(ctx); err != nil {
			return err
		}
		_, err := im.post(ctx, r)
		return err
	case threadsFile:
		return im.checkThreadLine(r)
	case blocksFile:
		var b blockRecord
		if err := im.decode(r, &b); err != nil {
			return err
		}
		if slices.ContainsFunc(b.Names, func(name string) bool { return len(name) > 300 }) {
			return refused("%s, record %d: /names", r.file, r.n)
		}
	}
	return nil
}

// unlock opens the private keys. Without a passphrase they are passed over.
func (im *importing) unlock(r record) error {
	if im.Passphrase == "" {
		return nil
	}
	id, err := age.NewScryptIdentity(im.Passphrase)
	if err != nil {
		return err
	}
	id.SetMaxWorkFactor(workFactor + 1)
	plain, err := age.Decrypt(bytes.NewReader(r.raw), id)
	if err != nil {
		return protocol.Invalid(protocol.Fault{Pointer: "/passphrase", Code: "wrong-passphrase", Detail: "does not open the private keys of this archive"})
	}
	im.private = map[string]key.Pair{}
	lines := bufio.NewScanner(io.LimitReader(plain, maxWhole))
	lines.Buffer(nil, 16<<10)
	for lines.Scan() {
		pair, err := key.ParsePair(lines.Bytes())
		if err != nil || key.IsPublicTestKey(pair.Thumbprint()) || len(im.private) >= maxKeys {
			return refused("%s holds something else than the private keys of a profile", privateFile)
		}
		im.private[pair.Thumbprint()] = pair
	}
	if lines.Err() != nil {
		return refused("%s is damaged", privateFile)
	}
	return nil
}

// provenKey gives the public half of a key that is shown to be the bearer's.
func (im *importing) provenKey(keyid string) crypto.PublicKey {
	if im.proven != nil {
		return im.proven[keyid]
	}
	if pair, ok := im.private[keyid]; ok && im.public[keyid] != nil {
		return pair.Public()
	}
	if im.Vouch {
		return im.public[keyid]
	}
	return nil
}

// note says a thing once.
func (im *importing) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(im.report.Notes, text) {
		im.report.Notes = append(im.report.Notes, text)
	}
}

func typeOf(v any) reflect.Type { return reflect.TypeOf(v).Elem() }
