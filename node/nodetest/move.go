package nodetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node"
	"stoa/protocol"
)

// A Mover is one end of a move: a running node, and the owner who is signed in.
type Mover struct {
	T testing.TB
	*House
	token string
}

// Call makes a call as the owner, in the node's own JSON.
func (m *Mover) Call(op *protocol.Operation, args map[string]any, file []byte, into any) error {
	m.T.Helper()
	return m.CallWith(m.token, op, args, file, into)
}

// CallWith is Call with another token.
func (m *Mover) CallWith(token string, op *protocol.Operation, args map[string]any, file []byte, into any) error {
	m.T.Helper()
	c, err := client.New(m.URL, client.Options{Token: token})
	require.NoError(m.T, err)
	call := client.Call{Operation: op.Name, Args: args}
	if file != nil {
		call.File = bytes.NewReader(file)
	}
	out, raw := &bytes.Buffer{}, []byte(nil)
	if op.GivesFile() {
		call.Out = out
	}
	res, err := c.Do(m.T.Context(), call)
	if err == nil {
		raw = res.Body
		if op.GivesFile() {
			*into.(*[]byte) = out.Bytes()
		} else if into != nil {
			require.NoError(m.T, json.Unmarshal(raw, into), "%s", raw)
		}
	}
	return err
}

// NewMover starts a node with an account that has the profile home.
func NewMover(t testing.TB, change ...func(*node.Config)) *Mover {
	m := &Mover{T: t, House: Start(t, change...)}
	m.Hosted("home")
	_ = m.TokenOf("home", "first")
	secret := m.AccountToken("home", "mover", protocol.OwnerScopes...)
	m.token = secret
	return m
}

// Imports imports an archive as the owner.
func (m *Mover) Imports(raw []byte, args map[string]any) (r protocol.ImportReport, err error) {
	m.T.Helper()
	err = m.Call(protocol.ImportArchive.Operation, args, raw, &r)
	return r, err
}

// tries are what a callback has been through, which continues by itself.
var tries = regexp.MustCompile(`("callback":\{"id":"[^"]*","n":\d+,"url":"[^"]*"),[^\n]*`)

// Unpacked is everything in an archive but the manifest, its signature, what is
// encrypted, and tries.
func Unpacked(t testing.TB, raw []byte) string {
	var all strings.Builder
	for _, m := range MembersOf(t, raw) {
		if !strings.HasPrefix(m.Name, "manifest") && m.Name != "private-keys.age" {
			all.WriteString(m.Name + "\n" + string(m.Body))
		}
	}
	return tries.ReplaceAllString(all.String(), "$1}}")
}

// A Packed is a file in an archive.
type Packed struct {
	Name string
	Body []byte
}

// MembersOf lists the files of an archive, in order.
func MembersOf(t testing.TB, raw []byte) (all []Packed) {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		all = append(all, Packed{h.Name, body})
	}
}

// TypeID matches an id with a prefix, which is its group.
var TypeID = regexp.MustCompile(`\b([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}\b`)
