// Package integrity makes and verifies what is embedded in documents: FEP-8b32 integrity proofs
// (Data Integrity, cryptosuite eddsa-jcs-2022), an agent's own signed statement of a post, and the
// verdict on who wrote a post that came from another node.
//
// Proofs are verified over the bytes as received, never over a struct that was decoded and encoded
// again. The package fetches nothing: the caller provides the key and the authority.
package integrity

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mr-tron/base58"

	"stoa/identity/strictjson"
)

// The only kind of proof that is made and accepted (FEP-8b32).
const (
	ProofType   = "DataIntegrityProof"
	Cryptosuite = "eddsa-jcs-2022"
	Purpose     = "assertionMethod"
)

var (
	// ErrNoProof: the document has no member proof.
	ErrNoProof = errors.New("no integrity proof")
	// ErrProof: the proof is of another kind, malformed, or not valid.
	ErrProof = errors.New("integrity proof refused")
)

// A Proof is the proof of a document as its signer wrote it. Until it is verified, all of it is a
// claim.
type Proof struct {
	Context            json.RawMessage `json:"@context,omitempty"`
	Type               string          `json:"type"`
	Cryptosuite        string          `json:"cryptosuite"`
	Created            string          `json:"created"`
	VerificationMethod string          `json:"verificationMethod"`
	ProofPurpose       string          `json:"proofPurpose"`
	ProofValue         string          `json:"proofValue"`
}

// Controller returns the owner of the key that the proof names: the verification method without
// its fragment. A proof is valid for a document only when this is its actor, or its attributedTo
// if it has no actor.
func (p Proof) Controller() string {
	id, _, _ := strings.Cut(p.VerificationMethod, "#")
	return id
}

// A Document is a JSON object with a proof that may not be valid.
type Document struct {
	Proof   Proof
	members map[string]json.RawMessage
}

// Read returns a document with its proof, not verified yet, so that the caller
// can find the key. It returns ErrNoProof when there is none, and an error that
// wraps ErrProof when it is not the one accepted kind. A list of proofs is
// refused: "any of them" is what forgers hope for.
func Read(raw []byte) (*Document, error) {
	doc, err := members(raw)
	if err != nil {
		return nil, err
	}
	p, err := read(doc)
	if err != nil {
		return nil, err
	}
	return &Document{p, doc}, nil
}

func read(doc map[string]json.RawMessage) (Proof, error) {
	raw, ok := doc["proof"]
	if !ok {
		return Proof{}, ErrNoProof
	}
	var p Proof
	if err := strictjson.DecodeLoose(raw, &p); err != nil {
		return Proof{}, fmt.Errorf("%w: exactly one proof object is accepted", ErrProof)
	}
	switch {
	case p.Type != ProofType || p.Cryptosuite != Cryptosuite:
		return Proof{}, fmt.Errorf("%w: want a %s with %s", ErrProof, ProofType, Cryptosuite)
	case p.ProofPurpose != Purpose:
		return Proof{}, fmt.Errorf("%w: want the purpose %s", ErrProof, Purpose)
	case p.VerificationMethod == "" || len(p.VerificationMethod) > 2048:
		return Proof{}, fmt.Errorf("%w: verificationMethod missing or too long", ErrProof)
	}
	if _, err := time.Parse(time.RFC3339, p.Created); err != nil {
		return Proof{}, fmt.Errorf("%w: created is not a time", ErrProof)
	}
	return p, nil
}

// Verify checks the proof with a public key. It does not ask whose key that is:
// see Proof.Controller. The error wraps ErrProof.
func (d *Document) Verify(pub ed25519.PublicKey) error {
	sig, err := multibase(d.Proof.ProofValue)
	if err != nil {
		return err
	}
	hash, err := hashData(d.members, d.members["proof"])
	if err != nil {
		return err
	}
	if len(pub) != ed25519.PublicKeySize || !ed25519.Verify(pub, hash, sig) {
		return fmt.Errorf("%w: the signature does not verify", ErrProof)
	}
	return nil
}

// Sign adds a proof to a JSON object that has none and returns it in canonical
// form (RFC 8785). The same document, key, method and time give the same bytes.
// The key must be an Ed25519 key.
func Sign(raw []byte, key crypto.Signer, method string, created time.Time) ([]byte, error) {
	doc, err := members(raw)
	if err != nil {
		return nil, err
	}
	if _, ok := doc["proof"]; ok {
		return nil, fmt.Errorf("%w: the document has a proof already", ErrProof)
	}
	if _, ok := key.Public().(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("%w: %T is no Ed25519 key", ErrProof, key)
	}
	p := Proof{
		Context: doc["@context"], Type: ProofType, Cryptosuite: Cryptosuite, ProofPurpose: Purpose,
		Created: created.UTC().Format(time.RFC3339Nano), VerificationMethod: method,
	}
	options, err := p.withoutValue()
	if err != nil {
		return nil, err
	}
	hash, err := hashData(doc, options)
	if err != nil {
		return nil, err
	}
	sig, err := key.Sign(nil, hash, crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign document: %w", err)
	}
	p.ProofValue = "z" + base58.Encode(sig)
	if doc["proof"], err = json.Marshal(p); err != nil {
		return nil, fmt.Errorf("write proof: %w", err)
	}
	return canonical(doc)
}

func (p Proof) withoutValue() (json.RawMessage, error) {
	options, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write proof: %w", err)
	}
	return options, nil
}

// hashData returns SHA-256 of the canonical proof options followed by SHA-256 of the canonical
// document (FEP-8b32, "Proof generation"). Both exclude the proof value; an old linked-data
// signature next to the proof is also excluded.
func hashData(doc map[string]json.RawMessage, proof json.RawMessage) ([]byte, error) {
	options, err := members(proof)
	if err != nil {
		return nil, err
	}
	delete(options, "proofValue")
	if err := sameContext(doc, options); err != nil {
		return nil, err
	}
	head, err := canonical(options)
	if err != nil {
		return nil, err
	}
	bare := make(map[string]json.RawMessage, len(doc))
	for name, value := range doc {
		if name != "proof" && name != "signature" {
			bare[name] = value
		}
	}
	body, err := canonical(bare)
	if err != nil {
		return nil, err
	}
	h, b := sha256.Sum256(head), sha256.Sum256(body)
	return append(h[:], b[:]...), nil
}

// sameContext refuses a proof whose context differs from the document's, so that the same members
// cannot mean something else.
func sameContext(doc, options map[string]json.RawMessage) error {
	own, ok := options["@context"]
	if !ok {
		return nil
	}
	if bytes.Equal(own, doc["@context"]) {
		return nil
	}
	a, err := strictjson.Canonical(own)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	b, err := strictjson.Canonical(orNull(doc["@context"]))
	if err != nil || string(a) != string(b) {
		return fmt.Errorf("%w: its @context differs from the document's", ErrProof)
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func members(raw []byte) (map[string]json.RawMessage, error) {
	if err := strictjson.Check(raw, strictjson.Default); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	doc := strictjson.Members(raw)
	if doc == nil {
		return nil, fmt.Errorf("%w: not an object", ErrProof)
	}
	return doc, nil
}

func canonical(doc map[string]json.RawMessage) ([]byte, error) {
	out, err := strictjson.CanonicalObject(doc)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return out, nil
}

// multibase decodes a proof value: "z" and base58btc of 64 bytes. The text is
// bounded first, because decoding base58 is quadratic.
func multibase(s string) ([]byte, error) {
	if len(s) > 100 || !strings.HasPrefix(s, "z") {
		return nil, fmt.Errorf("%w: proofValue is not base58btc", ErrProof)
	}
	sig, err := base58.Decode(s[1:])
	if err != nil || len(sig) != ed25519.SignatureSize {
		return nil, fmt.Errorf("%w: proofValue is not 64 bytes", ErrProof)
	}
	return sig, nil
}
