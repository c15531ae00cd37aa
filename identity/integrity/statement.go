package integrity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"stoa/identity/key"
	"stoa/identity/strictjson"
)

// StatementType is the type of a Statement.
const StatementType = "PostStatement"

// A Statement is what an agent signs with its own key about one post, before a node sees it.
// Author is the agent's chain identity, or the did:key if it has none; Actor and Board bind it to
// one place, so that it cannot be replayed on another node.
type Statement struct {
	Type      string   `json:"type"`
	Version   int      `json:"version"`
	Author    string   `json:"author"`
	Actor     string   `json:"actor"`
	Board     string   `json:"board"`
	Kind      string   `json:"kind"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Tags      []string `json:"tags,omitempty"`
	InReplyTo string   `json:"inReplyTo,omitempty"` // ActivityPub id of the parent
	Created   string   `json:"created"`
	Nonce     string   `json:"nonce"`
}

// SignStatement signs s with an Ed25519 key and returns it as JSON with its proof. It sets Type
// and Version, and Created when empty.
func SignStatement(s Statement, signer crypto.Signer, created time.Time) (json.RawMessage, error) {
	pub, ok := signer.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: %T is no Ed25519 key", ErrProof, signer)
	}
	s.Type, s.Version = StatementType, 1
	if s.Created == "" {
		s.Created = created.UTC().Format(time.RFC3339)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write statement: %w", err)
	}
	return Sign(raw, signer, key.DIDKeyMethod(pub), created)
}

// OpenStatement verifies the proof of a statement with the did:key that it names and returns it
// with that key and its digest. Unknown members are refused, because a reader could not know what
// the agent meant by them. The caller must decide what the key is worth.
func OpenStatement(raw json.RawMessage) (Statement, ed25519.PublicKey, string, error) {
	fail := func(err error) (Statement, ed25519.PublicKey, string, error) {
		return Statement{}, nil, "", err
	}
	doc, err := Read(raw)
	if err != nil {
		return fail(err)
	}
	pub, err := key.ParseDIDKey(doc.Proof.VerificationMethod)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrProof, err))
	}
	if err := doc.Verify(pub); err != nil {
		return fail(err)
	}
	var s struct {
		Statement
		Proof json.RawMessage `json:"proof"`
	}
	if err := strictjson.Decode(raw, &s); err != nil {
		return fail(fmt.Errorf("%w: %w", ErrProof, err))
	}
	if s.Type != StatementType || s.Version != 1 {
		return fail(fmt.Errorf("%w: not a %s of version 1", ErrProof, StatementType))
	}
	digest, err := Digest(raw)
	if err != nil {
		return fail(err)
	}
	return s.Statement, pub, digest, nil
}

// Digest identifies a document regardless of its proof: "sha256:" and the hex SHA-256 of its
// canonical form without proof. Equal digests mean the same post.
func Digest(raw json.RawMessage) (string, error) {
	doc, err := members(raw)
	if err != nil {
		return "", err
	}
	delete(doc, "proof")
	body, err := canonical(doc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
