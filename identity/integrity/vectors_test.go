package integrity_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"
	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol/must"
)

func load(t *testing.T, file string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", file)))(t), v))
}

// secret reads a "z3u2…" Ed25519 secret: multicodec 0x1300 and the seed.
func secret(t *testing.T, multibase string) ed25519.PrivateKey {
	t.Helper()
	raw := must.Get(base58.Decode(strings.TrimPrefix(multibase, "z")))(t)
	require.Len(t, raw, 34)
	return ed25519.NewKeyFromSeed(raw[2:])
}

func public(t *testing.T, multibase string) ed25519.PublicKey {
	t.Helper()
	return must.Get(key.ParseMultikey(multibase))(t)
}

// The vector of FEP-8b32, both ways, and its four forgeries.
func TestFEP8b32(t *testing.T) {
	t.Parallel()
	var v struct {
		Public   string          `json:"public_key_multibase"`
		Secret   string          `json:"secret_key_multibase"`
		Signed   json.RawMessage `json:"signed"`
		Unsigned json.RawMessage `json:"unsigned"`
		MustFail []struct {
			Patch map[string]string `json:"patch"`
			Why   string            `json:"why"`
		} `json:"must_fail"`
	}
	load(t, "fep-8b32-eddsa-jcs-2022.json", &v)
	pub := public(t, v.Public)

	proof := must.Get(verify(v.Signed, pub))(t)
	require.Equal(t, "https://server.example/users/alice", proof.Controller())

	created := must.Get(time.Parse(time.RFC3339, proof.Created))(t)
	again := must.Get(integrity.Sign(v.Unsigned, secret(t, v.Secret), proof.VerificationMethod, created))(t)
	require.JSONEq(t, string(v.Signed), string(again))

	require.NotEmpty(t, v.MustFail)
	for _, c := range v.MustFail {
		doc := must.JSON[map[string]any](v.Signed)(t)
		for path, value := range c.Patch {
			outer, inner, _ := strings.Cut(path, ".")
			doc[outer].(map[string]any)[inner] = value
		}
		require.ErrorIs(t, must.Err(verify(must.Get(json.Marshal(doc))(t), pub)), integrity.ErrProof, c.Why)
	}
}

// verify checks the proof of a document.
func verify(raw []byte, pub ed25519.PublicKey) (integrity.Proof, error) {
	doc, err := integrity.Read(raw)
	if err != nil {
		return integrity.Proof{}, err
	}
	return doc.Proof, doc.Verify(pub)
}

// verifyIdentity verifies a FEP-c390 VerifiableIdentityStatement that binds a
// did:key to an actor: subject and verification method are the same key, which
// signed it, and alsoKnownAs is the actor.
func verifyIdentity(raw json.RawMessage, actor string) (ed25519.PublicKey, error) {
	var s struct{ Type, Subject, AlsoKnownAs string }
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	doc, err := integrity.Read(raw)
	if err != nil {
		return nil, err
	}
	if s.Type != "VerifiableIdentityStatement" || s.AlsoKnownAs != actor || doc.Proof.Controller() != s.Subject {
		return nil, fmt.Errorf("%w: it is about somebody else", integrity.ErrProof)
	}
	pub, err := key.ParseDIDKey(doc.Proof.VerificationMethod)
	if err != nil {
		return nil, err
	}
	return pub, doc.Verify(pub)
}

// The did:key case of FEP-c390; the did:pkh case next to it is refused.
func TestFEPc390(t *testing.T) {
	t.Parallel()
	var v struct {
		DIDKey struct{ Signed json.RawMessage } `json:"did_key"`
		PKH    struct{ Signed json.RawMessage } `json:"did_pkh_eip191"`
	}
	load(t, "fep-c390-identity-proofs.json", &v)
	const alice = "https://server.example/users/alice"
	pub := must.Get(verifyIdentity(v.DIDKey.Signed, alice))(t)
	require.Equal(t, public(t, "z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2"), pub)
	require.ErrorIs(t, must.Err(verifyIdentity(v.DIDKey.Signed, "https://server.example/users/mallory")), integrity.ErrProof)
	require.ErrorIs(t, must.Err(verifyIdentity(v.PKH.Signed, "https://n1.example/ap/agents/ada")), integrity.ErrProof)
}

// Every proof that Fedify 2.3.6 put on the wire.
func TestFedifyProofs(t *testing.T) {
	t.Parallel()
	files := must.Get(filepath.Glob("testdata/fedify/*.json"))(t)
	checked := 0
	for _, file := range files {
		var v struct {
			Request struct{ Body string }
			Proof   *struct {
				Public   string `json:"public_key_multibase"`
				Expected string
			} `json:"integrity_proof"`
		}
		load(t, strings.TrimPrefix(file, "testdata/"), &v)
		if v.Proof == nil {
			continue
		}
		checked++
		require.NoError(t, must.Err(verify([]byte(v.Request.Body), public(t, v.Proof.Public))), file)
		require.Equal(t, "valid", v.Proof.Expected)
		_, err := verify([]byte(strings.Replace(v.Request.Body, `"actor":"http`, `"actor":"https`, 1)), public(t, v.Proof.Public))
		require.ErrorIs(t, err, integrity.ErrProof, file)
	}
	require.Equal(t, 10, checked)
}

// A whole post of this node's kind: statement, Create, log entry.
func TestProposedPost(t *testing.T) {
	t.Parallel()
	var v struct {
		Announce  json.RawMessage `json:"announce_log_entry"`
		Create    json.RawMessage
		Statement json.RawMessage
		Reply     json.RawMessage `json:"reply_statement"`
		Digest    string          `json:"statement_digest"`
		Keys      map[string]string
	}
	load(t, "stoa-proposed-post.json", &v)
	node := public(t, v.Keys["node_n1_ed25519_public_multibase"])
	for _, doc := range []json.RawMessage{v.Create, v.Announce} {
		must.Get(verify(doc, node))(t)
	}
	var entry struct{ Object json.RawMessage }
	require.NoError(t, json.Unmarshal(v.Announce, &entry))
	require.NoError(t, must.Err(verify(entry.Object, node)), "the Create inside the log entry keeps its proof")

	s, pub, digest, err := integrity.OpenStatement(v.Statement)
	require.NoError(t, err)
	require.Equal(t, v.Digest, digest)
	require.Equal(t, v.Keys["agent_did"], key.DIDKey(pub))
	require.Equal(t, []string{"paper", "hand.made"}, s.Tags)
	_, _, _, err = integrity.OpenStatement(v.Reply)
	require.NoError(t, err)

	created := must.Get(time.Parse(time.RFC3339, s.Created))(t)
	again := must.Get(integrity.SignStatement(s, secret(t, v.Keys["agent_ed25519_secret_multibase"]), created))(t)
	require.JSONEq(t, string(v.Statement), string(again))
}

func TestVerify_Refuses(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	pub := pair.Public().(ed25519.PublicKey)
	at := time.Date(2026, 11, 20, 10, 0, 2, 500e6, time.UTC)
	good := must.Get(integrity.Sign([]byte(`{"@context":["x"],"id":"https://a.example/1","n":1}`), pair.Signer(), "https://a.example/u#key", at))(t)
	must.Get(verify(good, pub))(t)
	require.Contains(t, string(good), `"created":"2026-11-20T10:00:02.5Z"`)

	doc := must.JSON[map[string]json.RawMessage](good)(t)
	with := func(name, value string) []byte {
		copied := map[string]json.RawMessage{}
		for k, v := range doc {
			copied[k] = v
		}
		copied[name] = json.RawMessage(value)
		return must.Get(json.Marshal(copied))(t)
	}
	proof := string(doc["proof"])
	for name, raw := range map[string][]byte{
		"no proof":             []byte(`{"id":"x"}`),
		"a list of proofs":     with("proof", "["+proof+"]"),
		"proof of another ctx": with("proof", strings.Replace(proof, `["x"]`, `["y"]`, 1)),
		"other context":        with("@context", `["y"]`),
		"another suite":        with("proof", strings.Replace(proof, "eddsa-jcs-2022", "eddsa-rdfc-2022", 1)),
		"another purpose":      with("proof", strings.Replace(proof, "assertionMethod", "authentication", 1)),
		"short value": with("proof",
			`{"type":"DataIntegrityProof","cryptosuite":"eddsa-jcs-2022","created":"2026-11-20T10:00:02Z","verificationMethod":"x",`+
				`"proofPurpose":"assertionMethod","proofValue":"z11"}`),
		"huge value": with("proof",
			`{"type":"DataIntegrityProof","cryptosuite":"eddsa-jcs-2022","created":"2026-11-20T10:00:02Z","verificationMethod":"x",`+
				`"proofPurpose":"assertionMethod","proofValue":"z`+strings.Repeat("2", 100_000)+`"}`),
		"changed":        with("n", "2"),
		"a member more":  with("m", "2"),
		"a member twice": []byte(strings.Replace(string(good), `"n":1`, `"n":1,"n":1`, 1)),
		"deep":           with("n", strings.Repeat("[", 40)+strings.Repeat("]", 40)),
		"null":           []byte(`null`),
		"an array":       []byte(`[]`),
	} {
		require.Error(t, must.Err(verify(raw, pub)), name)
	}
	require.NoError(t, must.Err(verify(with("signature", `{"type":"RsaSignature2017"}`), pub)), "an old linked-data signature is not part of the document")
	require.ErrorIs(t, must.Err(integrity.Sign(good, pair.Signer(), "x", at)), integrity.ErrProof, "no second proof")
}

func FuzzVerify(f *testing.F) {
	raw, err := os.ReadFile("testdata/fep-8b32-eddsa-jcs-2022.json")
	if err != nil {
		f.Fatal(err)
	}
	var v struct{ Signed json.RawMessage }
	if err := json.Unmarshal(raw, &v); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(v.Signed))
	f.Add([]byte(`{"proof":{}}`))
	pub := make(ed25519.PublicKey, ed25519.PublicKeySize)
	f.Fuzz(func(t *testing.T, raw []byte) {
		require.Error(t, must.Err(verify(raw, pub)), "an all-zero key verifies nothing here")
		_, _, _, err := integrity.OpenStatement(raw)
		_ = err
	})
}
