package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// home is a room on a database of its own.
type home struct {
	*Archive
	t *testing.T
}

// newHome makes the room of the node at base; nodes are the keys that others serve.
func newHome(t *testing.T, base string, nodes map[string]key.Set) *home {
	t.Helper()
	pair := must.Get(key.GenerateEd25519())(t)
	return &home{New(Archive{
		Base: base, DB: storagetest.Open(t), Signer: pair,
		Open: func(k *storage.AgentKey) (key.Pair, error) { return key.ParsePair(k.Sealed) },
		Seal: func(_ string, p key.Pair) ([]byte, error) { return p.MarshalPrivate() },
		Nodes: func(_ context.Context, base string) (key.Set, error) {
			set, ok := nodes[base]
			if !ok {
				return set, errors.New("no answer")
			}
			return set, nil
		},
		Watch: func(context.Context, *storage.Tx, *storage.StoredThread) error { return nil },
		Admit: func(context.Context, *storage.Tx, protocol.Caller, string) (protocol.ProfileState, error) {
			return "", nil
		},
		Admitted: func(context.Context, *storage.Tx, protocol.Caller) error { return nil },
		Spool:    func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "spool") },
	}), t}
}

func (h *home) write(fn func(ctx context.Context, tx *storage.Tx) error) {
	h.t.Helper()
	require.NoError(h.t, h.DB.Write(h.t.Context(), fn))
}

// profile puts a profile with a post of its own here.
func (h *home) profile(handle string) {
	h.t.Helper()
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "Asha", Kind: protocol.Person}})
		return err
	})
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		id, actor := protocol.NewID(protocol.PostID, tx.Now), protocol.ActorID(h.Base, handle)
		return tx.Posts().Insert(ctx, &protocol.StoredPost{Board: protocol.BoardID(h.Base), Post: protocol.Post{
			ID: id, URI: protocol.PostURI(h.Base, id), Kind: protocol.Offer, Title: "Paper", Body: "200 sheets", Tags: []string{}, CreatedAt: tx.Now, Untrusted: true,
			Author: protocol.Author{Name: "Asha", Handle: &handle, Actor: &actor, Verified: true, Method: protocol.BySession},
		}})
	})
}

func (h *home) export(handle string) []byte {
	h.t.Helper()
	var out bytes.Buffer
	require.NoError(h.t, h.Write(h.t.Context(), &out, "operator", handle, "", nil))
	return out.Bytes()
}

func (h *home) imports(raw []byte, o Order) (protocol.ImportReport, error) {
	h.t.Helper()
	f := must.Get(os.CreateTemp(h.t.TempDir(), "archive"))(h.t)
	defer f.Close()
	must.Get(f.Write(raw))(h.t)
	if o.Limits == (Limits{}) {
		o.Limits = OwnerLimits
	}
	return h.Read(h.t.Context(), f, o)
}

var operator = protocol.Caller{Standing: protocol.Operator}

func owner(account string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Account: account}
}

func keysOf(h *home) key.Set {
	return key.Set{Keys: []key.Public{{Key: h.Signer.Public(), Thumbprint: h.Signer.Thumbprint()}}}
}

// TestRead_Posts: posts come only with the word of the node that made them, which is
// asked; with the operator's in its place when it cannot be asked.
func TestRead_Posts(t *testing.T) {
	t.Parallel()
	from := newHome(t, "https://n1.example", nil)
	from.profile("asha")
	raw := from.export("asha")
	other := newHome(t, "https://n3.example", nil)
	for _, tt := range []struct {
		name   string
		nodes  map[string]key.Set
		order  Order
		posts  int
		failed bool
	}{
		{"the node answers", map[string]key.Set{from.Base: keysOf(from)}, Order{By: operator}, 1, false},
		{"the node is away", nil, Order{By: operator}, 0, false},
		{"the node is away, the operator vouches", nil, Order{By: operator, Vouch: true}, 1, false},
		{"another key", map[string]key.Set{from.Base: keysOf(other)}, Order{By: operator}, 0, false},
		{"an owner vouches", nil, Order{By: owner("acc_1"), Vouch: true}, 0, true},
		{"nobody", nil, Order{}, 0, true},
	} {
		to := newHome(t, "https://n2.example", tt.nodes)
		report, err := to.imports(raw, tt.order)
		if tt.failed {
			require.Equal(t, protocol.Forbidden, protocol.CodeOf(err), tt.name)
			continue
		}
		require.NoError(t, err, tt.name)
		require.Equal(t, "created", report.Profile, tt.name)
		require.Equal(t, from.Base, report.From)
		require.Equal(t, tt.posts, report.Posts.New, "%s: %v", tt.name, report.Notes)
		require.NoError(t, to.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Posts().List(ctx, protocol.BoardQuery{})
			require.Len(t, page.Items, tt.posts, tt.name)
			for _, p := range page.Items {
				require.False(t, p.Author.Verified, "%s: the word of a node is no check", tt.name)
				require.Equal(t, "n1.example", *p.Node, tt.name)
			}
			return err
		}))
		require.NoError(t, to.DB.Check(t.Context()))
		again, err := to.imports(raw, tt.order)
		require.NoError(t, err, tt.name)
		require.Equal(t, "kept", again.Profile)
		require.Zero(t, again.Posts.New, "%s: a second time changes nothing", tt.name)
	}
}

// TestRead_DryRun says what would be and changes nothing.
func TestRead_DryRun(t *testing.T) {
	t.Parallel()
	from := newHome(t, "https://n1.example", nil)
	from.profile("asha")
	to := newHome(t, "https://n2.example", map[string]key.Set{from.Base: keysOf(from)})
	report := must.Get(to.imports(from.export("asha"), Order{By: operator, ImportRequest: protocol.ImportRequest{DryRun: true, As: "asha2"}}))(t)
	require.True(t, report.DryRun)
	require.Equal(t, "asha2", report.Handle)
	require.Equal(t, 1, report.Posts.New)
	require.NoError(t, to.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		require.ErrorIs(t, must.Err(tx.Profiles().ByHandle(ctx, "asha2")), storage.ErrNotFound)
		return nil
	}))
}

// TestRead_Handle: nobody takes a profile that is someone else's.
func TestRead_Handle(t *testing.T) {
	t.Parallel()
	from := newHome(t, "https://n1.example", nil)
	from.profile("asha")
	raw := from.export("asha")
	to := newHome(t, "https://n2.example", nil)
	to.profile("asha")
	_, err := to.imports(raw, Order{By: owner("acc_1"), ImportRequest: protocol.ImportRequest{Replace: true}})
	require.Contains(t, []protocol.Code{protocol.Conflict, protocol.Forbidden}, protocol.CodeOf(err), "%v", err)
	require.Error(t, must.Err(to.imports(raw, Order{By: owner("acc_1"), ImportRequest: protocol.ImportRequest{As: "admin"}})), "a reserved handle")
}

// TestExport_Rights: keys leave a node for a session or the scope keys only, and an
// owner's profiles for that owner.
func TestExport_Rights(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n1.example", nil)
	h.profile("asha")
	asha := protocol.Caller{Standing: protocol.Session, Account: "acc_1", Handle: "asha", Handles: []string{"asha"}}
	narrow, signer := asha, protocol.Caller{Standing: protocol.Signed, Handle: "asha"}
	narrow.Scopes = []protocol.Scope{protocol.ScopeArchive}
	const secret = "correct horse battery"
	for _, tt := range []struct {
		name   string
		caller protocol.Caller
		in     protocol.ExportRequest
		code   protocol.Code
	}{
		{"a session", asha, protocol.ExportRequest{Passphrase: secret}, ""},
		{"a token", narrow, protocol.ExportRequest{}, ""},
		{"a token, with keys", narrow, protocol.ExportRequest{Passphrase: secret}, protocol.Forbidden},
		{"a signer", signer, protocol.ExportRequest{}, ""},
		{"a signer, with keys", signer, protocol.ExportRequest{Passphrase: secret}, protocol.Forbidden},
		{"somebody else's", asha, protocol.ExportRequest{Owned: protocol.Owned{Handle: "ravi"}}, protocol.Forbidden},
	} {
		f, err := h.Export(t.Context(), tt.caller, tt.in)
		require.Equal(t, tt.code, protocol.CodeOf(err), "%s: %v", tt.name, err)
		if err == nil {
			raw := must.Get(io.ReadAll(f))(t)
			require.Equal(t, int64(len(raw)), f.Size())
			require.NoError(t, f.Close())
		}
	}
}

// A part is a member of an archive that is made by hand.
type part struct {
	name, body string
	kind       byte // of tar; 0 is a file
}

// packed makes an archive of parts; change edits the manifest that fits them.
func packed(t *testing.T, parts []part, change func(*manifest)) []byte {
	t.Helper()
	m := manifest{Format: protocol.ArchiveFormat, Handle: "asha", Node: "https://n1.example", PrivateKeys: "none", About: []string{}, Members: []member{}}
	for _, p := range parts {
		sum, count := sha256.Sum256([]byte(p.body)), 1
		if strings.HasSuffix(p.name, ".ndjson") {
			count = strings.Count(p.body, "\n")
		}
		m.Members = append(m.Members, member{p.name, count, int64(len(p.body)), hex.EncodeToString(sum[:])})
	}
	if change != nil {
		change(&m)
	}
	head := must.Get(json.Marshal(m))(t)
	sig := fmt.Sprintf(`{"keyid":%q,"protected":"x","signature":"x"}`, strings.Repeat("k", 43))
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tarred := tar.NewWriter(zip)
	for _, p := range append([]part{{name: manifestFile, body: string(head)}, {name: signatureFile, body: sig}}, parts...) {
		h := &tar.Header{Name: p.name, Mode: 0o600, Size: int64(len(p.body)), Typeflag: tar.TypeReg}
		if p.kind != 0 {
			h.Typeflag, h.Size, h.Linkname, p.body = p.kind, 0, "/etc/passwd", ""
		}
		require.NoError(t, tarred.WriteHeader(h))
		must.Get(io.WriteString(tarred, p.body))(t)
	}
	require.NoError(t, tarred.Close())
	require.NoError(t, zip.Close())
	return out.Bytes()
}

// TestWalk is what makes an archive no archive, before anything in it is looked at.
func TestWalk(t *testing.T) {
	t.Parallel()
	a := New(Archive{})
	profile, posts := part{name: profileFile, body: `{}`}, part{name: postsFile, body: "{}\n{}\n"}
	blocks := part{name: blocksFile, body: "{}\n"}
	good := packed(t, []part{profile, posts, blocks}, nil)
	small := Limits{Bytes: 1 << 20, Lines: 10}
	first := func(fn func(*member)) func(*manifest) { return func(m *manifest) { fn(&m.Members[0]) } }
	second := func(fn func(*member)) func(*manifest) { return func(m *manifest) { fn(&m.Members[1]) } }
	for _, tt := range []struct {
		name string
		raw  []byte
		lim  Limits
		code protocol.Code
	}{
		{"good", good, small, ""},
		{"the profile alone", packed(t, []part{profile}, nil), small, ""},
		{"no gzip", []byte("x"), small, protocol.InvalidRequest},
		{"cut off", good[:len(good)-12], small, protocol.InvalidRequest},
		{"more after the end", append(bytes.Clone(good), 'x'), small, protocol.InvalidRequest},
		{"two archives", append(bytes.Clone(good), good...), small, protocol.InvalidRequest},
		{"nothing in it", packed(t, nil, nil), small, protocol.InvalidRequest},
		{"no profile", packed(t, []part{posts}, nil), small, protocol.InvalidRequest},
		{"another order", packed(t, []part{profile, blocks, posts}, nil), small, protocol.InvalidRequest},
		{"a member twice", packed(t, []part{profile, posts, posts}, nil), small, protocol.InvalidRequest},
		{"an unknown member", packed(t, []part{profile, {name: "../../etc/passwd", body: "{}"}}, nil), small, protocol.InvalidRequest},
		{"a link", packed(t, []part{profile, {name: postsFile, body: "{}\n", kind: tar.TypeSymlink}}, nil), small, protocol.InvalidRequest},
		{"more than the manifest names", packed(t, []part{profile, posts}, func(m *manifest) { m.Members = m.Members[:1] }), small, protocol.InvalidRequest},
		{"less than it names", packed(t, []part{profile}, func(m *manifest) {
			m.Members = append(m.Members, member{Name: postsFile, SHA256: strings.Repeat("0", 64)})
		}), small, protocol.InvalidRequest},
		{"another hash", packed(t, []part{profile}, first(func(m *member) { m.SHA256 = strings.Repeat("0", 64) })), small, protocol.InvalidRequest},
		{"another length", packed(t, []part{profile}, first(func(m *member) { m.Bytes++ })), small, protocol.InvalidRequest},
		{"more records than said", packed(t, []part{profile, posts}, second(func(m *member) { m.Count = 1 })), small, protocol.InvalidRequest},
		{"fewer records than said", packed(t, []part{profile, posts}, second(func(m *member) { m.Count = 3 })), small, protocol.InvalidRequest},
		{"two profiles", packed(t, []part{profile}, first(func(m *member) { m.Count = 2 })), small, protocol.InvalidRequest},
		{"another format", packed(t, []part{profile}, func(m *manifest) { m.Format = "stoa.archive/v9" }), small, protocol.InvalidRequest},
		{"a handle that is none", packed(t, []part{profile}, func(m *manifest) { m.Handle = "../x" }), small, protocol.InvalidRequest},
		{"too many records", good, Limits{Bytes: 1 << 20, Lines: 3}, protocol.TooLarge},
		{"as many as may be", good, Limits{Bytes: 1 << 20, Lines: 4}, ""},
		{"too many bytes", good, Limits{Bytes: 2048, Lines: 10}, protocol.TooLarge},
		{"a bomb", packed(t, []part{profile, {name: postsFile, body: strings.Repeat("{}\n", 1<<20)}}, nil), Limits{Bytes: 1 << 20, Lines: 1 << 30},
			protocol.TooLarge},
		{"a line without an end", packed(t, []part{profile, {name: postsFile, body: strings.Repeat(" ", maxLine+1) + "\n"}}, nil), small, protocol.InvalidRequest},
		{"a profile that is too long", packed(t, []part{{name: profileFile, body: strings.Repeat(" ", maxWhole+1)}}, nil), small, protocol.InvalidRequest},
	} {
		var seen []string
		err := walk(bytes.NewReader(tt.raw), tt.lim, func(*manifest, []byte, signature) error { return nil },
			func(r record) error { seen = append(seen, fmt.Sprint(r.file, r.n)); return nil }, a)
		require.Equal(t, tt.code, protocol.CodeOf(err), "%s: %v", tt.name, err)
		if tt.name == "good" {
			require.Equal(t, []string{profileFile + "1", postsFile + "1", postsFile + "2", blocksFile + "1"}, seen)
		}
	}
}
