package tree

import (
	"crypto/ed25519"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"stoa/protocol/must"
)

// Paths are those of C2SP tlog-tiles, each tile has one.
func TestPath(t *testing.T) {
	t.Parallel()
	for path, tile := range map[string]Tile{
		"tile/0/x001/x234/067":     At(0, 1234067, 256),
		"tile/1/000.p/8":           At(1, 0, 8),
		"tile/entries/x001/000":    At(Bundles, 1000, 256),
		"tile/entries/005.p/255":   At(Bundles, 5, 255),
		"tile/7/999":               At(7, 999, 256),
		"tile/0/x999/x999/999.p/1": At(0, 999999999, 1),
	} {
		require.Equal(t, path, Path(tile))
		got, ok := ParsePath(path)
		require.True(t, ok, path)
		require.Equal(t, tile, got)
	}
	for _, path := range []string{"", "tile/0/1", "tile/0/0001", "tile/00/001", "tile/0/x000/001", "tile/0/001.p/256", "tile/0/001.p/0", "tile/0/001.p/08",
		"tile/8/0/001", "tile/data/001", "tile/-1/001", "tile/0/001/", "tile/0/" + strings.Repeat("x999/", 20) + "999"} {
		_, ok := ParsePath(path)
		require.False(t, ok, path)
	}
}

// Leaves and bundles are read in the one form in which they are written.
func TestLeaf(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(nil)
	for _, l := range []Leaf{{1, sum[:], sum[:]}, {1 << 40, sum[:], nil}, {7, nil, nil}} {
		require.Equal(t, l, must.Get(ParseLeaf(l.Bytes()))(t))
	}
	for _, text := range []string{"", "1\n-\n-", "01\n-\n-\n", "1\nsha256:00\n-\n", "1\n-\n-\n\n", "x\n-\n-\n", "1\n" + strings.ToUpper(Name(sum[:])) + "\n-\n"} {
		require.ErrorIs(t, must.Err(ParseLeaf([]byte(text))), ErrTree, text)
	}
	b := Bundle([][]byte{[]byte("one"), nil, []byte("three")})
	require.Equal(t, "\x00\x03one\x00\x00\x00\x05three", string(b))
	got := must.Get(ParseBundle(b, 3))(t)
	require.Equal(t, []byte("three"), got[2])
	for n, bad := range map[int][]byte{2: b, 4: b, 1: b[:4]} {
		require.ErrorIs(t, must.Err(ParseBundle(bad, n)), ErrTree)
	}
}

// A checkpoint is a signed note of its log, and nothing else is taken for one.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	pub := key.Public().(ed25519.PublicKey)
	c := Checkpoint{Origin: "a.example/tree", Size: 7}
	raw := must.Get(Sign(c, key))(t)
	require.Equal(t, c, must.Get(Open(raw, c.Origin, pub))(t))
	verifier := must.Get(note.NewVerifier(VerifierKey(c.Origin, pub)))(t)
	must.Get(note.Open(raw, note.VerifierList(verifier)))(t)

	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32))).Public().(ed25519.PublicKey)
	for name, open := range map[string]func() (Checkpoint, error){
		"another key":    func() (Checkpoint, error) { return Open(raw, c.Origin, other) },
		"another origin": func() (Checkpoint, error) { return Open(raw, "b.example/tree", pub) },
		"changed": func() (Checkpoint, error) {
			return Open([]byte(strings.Replace(string(raw), "7", "8", 1)), c.Origin, pub)
		},
		"too large": func() (Checkpoint, error) { return Open(make([]byte, MaxCheckpoint+1), c.Origin, pub) },
		"nothing":   func() (Checkpoint, error) { return Open(nil, c.Origin, pub) },
	} {
		require.ErrorIs(t, must.Err(open()), ErrTree, name)
	}
	for _, text := range []string{"a\n07\n" + c.Root.String() + "\n", "a\n-1\n" + c.Root.String() + "\n", "a\n7\nx\n", "a\n7\n"} {
		require.ErrorIs(t, must.Err(Parse([]byte(text))), ErrTree, text)
	}
}
