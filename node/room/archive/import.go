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

// What an import believes. The bearer may have written the archive, so:
//
//   - Texts, counts and sizes must satisfy the rules for fresh input.
//   - The profile is what the bearer says; it may claim what any owner may claim.
//   - A key belongs to the bearer when the archive holds its private half. Only such keys prove
//     posts, and only with one of them is a chain identity enrolled, when the chain confirms it.
//   - A post names the node that made it. It is accepted only when that node's signature on the
//     manifest verifies with a key that the node publishes. It is marked verified only by its
//     author's signature: with a key of the bearer, or with one that the chain grants to the
//     enrolled identity.
//   - An order receipt names the node that issued it. It is accepted only from that node's archive, with
//     that node's signature on both, so that neither the receipt nor its revocation is made up.
//   - The writers in threads are the other node's word: none of them is marked verified.
//
// The operator may vouch for an archive: the profile and the node that it names are then believed.

// An Order is an import and its caller.
type Order struct {
	protocol.ImportRequest
	By       protocol.Caller // an account, or the operator
	Limits   Limits
	Vouch    bool   // with an operator: believe what the archive says of its profile and node
	Account  string // with an operator: the account that a new profile belongs to, "" for none
	Progress Progress
}

func (o *Order) operator() bool { return o.By.Standing == protocol.Operator }

var errNoAccount = protocol.Errorf(protocol.Forbidden, "only an account or the operator can import an archive")

// Read imports an archive. It reads it three times: to check all of it and to ask other machines
// what must be asked; to store the profile and the small members, in one transaction; and to store
// everything else, in many. After the first reading the import is kept in the database, and an
// import that was interrupted is finished later (resume.go): in the end all of the archive is
// stored, or nothing.
func (a *Archive) Read(ctx context.Context, f *os.File, o Order) (protocol.ImportReport, error) {
	if o.operator() != (o.By.Account == "") || o.Vouch && !o.operator() {
		return protocol.ImportReport{}, errNoAccount
	}
	im := &importing{Archive: a, Order: o, gone: o.Vouch, asked: map[grant]answer{}}
	if err := im.inspect(ctx, f); err != nil {
		return protocol.ImportReport{}, err
	}
	if o.DryRun {
		return im.dryRun(ctx, f)
	}
	holder := rand.Text()
	id, err := im.stage(ctx, f, holder)
	if err != nil {
		return protocol.ImportReport{}, err
	}
	if err := im.begin(ctx, id); err != nil {
		return protocol.ImportReport{}, errors.Join(err, a.deletePieces(ctx, id, true))
	}
	if !o.operator() { // the import continues when an owner's client has disconnected
		ctx = context.WithoutCancel(ctx)
	}
	report, err := a.finish(ctx, id, holder, o.Progress)
	if err != nil && !errors.Is(err, errGone) {
		err = &protocol.Error{
			Code: protocol.Overloaded, Detail: "the profile is imported, the rest of the archive not yet; the node continues by itself",
			RetryAfter: time.Minute, Err: err,
		}
	}
	return report, err
}

// importing is one import under way.
type importing struct {
	*Archive
	Order
	manifest *manifest
	host     string  // of the node that made the archive
	handle   string  // of the profile here
	signed   bool    // signature of that node verifies
	why      string  // reason, when it is not
	gone     bool    // that node does not exist any more, on the word of the operator
	nodeKeys key.Set // of that node
	profile  profileRecord
	private  map[string]key.Pair // by thumbprint: keys whose private half the archive holds
	public   map[string]crypto.PublicKey
	sum      []byte                      // SHA-256 of the archive
	proven   map[string]crypto.PublicKey // own keys, complete after inspect
	erc8004  string                      // the identity to enrol, "" for none
	enrols   storage.Enrolment           // with erc8004: what the chain says of it
	refusal  string                      // reason, when no identity is enrolled

	enrolsKey []byte // with erc8004: the key as the chain has it
	asked     map[grant]answer
	asking    bool // the chain may still be asked

	state protocol.ProfileState // of a profile that is new here

	report protocol.ImportReport
	open   *openThread
}

// inspect checks the whole archive, and asks the node that it names and the chain.
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
		return refused("a thread has fewer messages than it says")
	}
	if err := im.askChain(ctx); err != nil { // not asked yet when the archive has no posts
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

// setOrigin stores the manifest and the host of the node that made the archive.
func (im *importing) setOrigin(m *manifest) error {
	u, err := url.Parse(m.Node)
	if err != nil || u.Host == "" || m.Node != u.Scheme+"://"+u.Host || u.Host != strings.ToLower(u.Host) ||
		u.Scheme != "https" && m.Node != im.Base && !(im.Private && u.Scheme == "http") {
		return refused("/node of the manifest is not the base address of a node")
	}
	im.manifest, im.host = m, u.Host
	return nil
}

// checkSignature verifies the manifest's signature with the keys of the node that it names. why is
// the reason when ok is false.
func (im *importing) checkSignature(ctx context.Context, raw []byte, sig signature) (ok bool, why string) {
	if im.manifest.Node == im.Base {
		im.nodeKeys = key.Set{Keys: []key.Public{im.Signer.Published()}}
	}
	if im.Vouch {
		return true, ""
	}
	if im.manifest.Node == im.Base {
		if sig.KeyID != im.Signer.Thumbprint() || key.VerifyJWS(im.Signer.Public(), raw, sig.Protected, sig.Signature) != nil {
			return false, "the archive is not signed by this node"
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
		return false, "the signature of " + im.host + " on the archive is not valid"
	}
	im.nodeKeys = set
	return true, ""
}

// checkRecord checks one record and collects what the transaction needs to know.
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
			return refused("the profile of a person cannot have a merchant record")
		}
		if faults := m.Record.Check(); len(faults) > 0 {
			return protocol.Invalid(faults...)
		}
		if len(m.Record.Hours)+len(m.Record.ExceptionHours) > 0 && m.Record.Timezone == "" && im.profile.Draft.Timezone == "" {
			return refused("hours need a time zone")
		}
		return nil
	case itemsFile:
		if im.profile.Draft.Kind != protocol.Business {
			return refused("the profile of a person cannot have items")
		}
		if r.n > protocol.MaxItems {
			return refused("a catalog holds at most %d items", protocol.MaxItems)
		}
		return im.decode(r, &protocol.ItemDraft{})
	case picturesFile:
		return im.decode(r, &pictureRecord{})
	case notifyFile:
		return im.decode(r, &protocol.NotifyDraft{})
	case roomsFile:
		_, err := im.rooms(r)
		return err
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
	case bidsFile:
		return im.decode(r, &bidRecord{})
	case ordersFile:
		return im.decode(r, &orderRecord{})
	case meetingsFile:
		_, err := im.meeting(r)
		return err
	case nodeKeysFile:
		return im.readNodeKeys(r)
	case receiptsFile:
		_, _, err := im.receipt(r)
		return err
	}
	return nil
}

// unlock decrypts the private keys. Without a passphrase it ignores them.
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
			return refused("%s holds something other than the private keys of a profile", privateFile)
		}
		im.private[pair.Thumbprint()] = pair
	}
	if lines.Err() != nil {
		return refused("%s is damaged", privateFile)
	}
	return nil
}

// provenKey returns the public half of a key that the bearer has proved to own, nil for any other.
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

// note adds a note to the report unless it is there already.
func (im *importing) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(im.report.Notes, text) {
		im.report.Notes = append(im.report.Notes, text)
	}
}

func typeOf(v any) reflect.Type { return reflect.TypeOf(v).Elem() }
