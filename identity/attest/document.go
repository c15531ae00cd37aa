// Package attest makes and verifies proof documents: what a node shows about one object of its own, with everything by which a third
// party can check it without asking the node. docs/PROOF.md is the format.
//
// The package fetches nothing.
package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

// MediaType is that of a proof document.
const MediaType = "application/vnd.stoa.proof.v1+json"

// SeenType is the header typ of the JWS in Document.Seen.
const SeenType = "stoa-seen+jwt"

// MaxDocument bounds a proof document, in bytes.
const MaxDocument = 256 << 10

const maxSeen = 8 << 10

// Version is that of the format.
const Version = 1

// Kinds of authorities.
const (
	OfChain     = "chain"     // a proof of the chain's state
	OfNode      = "node"      // what the node read from the chain's state
	OfDirectory = "directory" // a key directory
	OfProfile   = "profile"   // a key of a profile of the node
	OfSession   = "session"   // the profile's owner was signed in at the node
	OfNobody    = "none"      // nobody vouches for the author
)

// Kinds of objects.
const (
	KindPost     = "post"     // of the board: a Post
	KindBid      = "bid"      // on an attention board: a Bid
	KindProfile  = "profile"  // a Profile
	KindReview   = "review"   // a protocol.Review
	KindReceipt  = "receipt"  // whether a receipt of an order is valid: a protocol.ReceiptStatus
	KindDecision = "decision" // of moderation: a protocol.ModerationEntry
	KindCard     = "card"     // A2A agent card
	KindLog      = "log"      // the head of a board's log: a Head
)

// A Document is a proof document.
type Document struct {
	Version   int             `json:"version"`
	Subject   Subject         `json:"subject"`
	Evidence  json.RawMessage `json:"evidence,omitempty"`  // httpsig.Evidence: the signed request
	Statement json.RawMessage `json:"statement,omitempty"` // integrity.Statement, which the author signed
	Authority Authority       `json:"authority"`
	Seen      string          `json:"seen"`          // a compact JWS of Seen, by the node
	Log       *Inclusion      `json:"log,omitempty"` // in the log of the node's board
}

// A Subject is the object that the document is about.
type Subject struct {
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`     // the same on every node
	URL    string          `json:"url"`    // where the node shows it
	Object json.RawMessage `json:"object"` // as the node shows it, without what others change, such as counts
	Hash   string          `json:"hash"`   // Hash of Object
}

// A Post is the object of a post.
type Post struct {
	Kind      string          `json:"kind"`
	Title     string          `json:"title"`
	Body      string          `json:"body"`
	Tags      []string        `json:"tags"`
	InReplyTo string          `json:"inReplyTo,omitempty"` // ActivityPub id of the parent
	Board     string          `json:"board"`               // ActivityPub id of the board that logs it
	Author    protocol.Author `json:"author"`
	CreatedAt time.Time       `json:"createdAt"`
	EditedAt  *time.Time      `json:"editedAt,omitempty"`
}

// A Bid is the object of a live bid whose text is public.
type Bid struct {
	Handle    string          `json:"handle"` // of the attention board
	Amount    protocol.Money  `json:"amount"`
	Message   string          `json:"message"`
	URL       string          `json:"url,omitempty"`
	Category  string          `json:"category,omitempty"`
	Author    protocol.Author `json:"author"`
	CreatedAt time.Time       `json:"createdAt"`
	LiveAt    time.Time       `json:"liveAt"`
	EndsAt    time.Time       `json:"endsAt"`
	Test      bool            `json:"test"` // no money moved
}

// A Profile is the object of a profile.
type Profile struct {
	Profile json.RawMessage  `json:"profile"`          // protocol.Profile, without what changes by itself: reputation, and whether it answers
	Author  *protocol.Author `json:"author,omitempty"` // with the chain identity and the key that is the profile's; nil for none
}

// A Head is the object of a log.
type Head struct {
	Epoch      string `json:"epoch"`
	Size       int64  `json:"size"`
	Checkpoint string `json:"checkpoint"` // C2SP tlog-checkpoint, signed by the node and cosigned by nodes that follow it
}

// Authority is who says that the author's key is the author's.
type Authority struct {
	Kind      string          `json:"kind"`
	Reason    string          `json:"reason,omitempty"` // of OfNode: why there is no proof of the chain's state
	Identity  string          `json:"identity,omitempty"`
	Block     uint64          `json:"block,omitempty"`
	BlockHash string          `json:"blockHash,omitempty"`
	Owner     string          `json:"owner,omitempty"`  // of the identity at that block
	Wallet    string          `json:"wallet,omitempty"` // absent for none
	Record    erc8004.Hex     `json:"record,omitempty"` // the signed list of the identity's keys
	Layout    string          `json:"layout,omitempty"` // erc8004.StateProof
	Header    erc8004.Hex     `json:"header,omitempty"`
	Nodes     []erc8004.Hex   `json:"nodes,omitempty"`
	Directory string          `json:"directory,omitempty"` // address of the key directory
	Key       json.RawMessage `json:"key,omitempty"`       // public JWK of the author, where the chain does not give it
}

// Seen is what the node signs.
type Seen struct {
	Issuer   string               `json:"iss"` // address of the node
	Subject  string               `json:"sub"` // Subject.ID
	At       int64                `json:"iat"` // when the node saw the object as it is, Unix seconds
	Object   string               `json:"object"`
	Document string               `json:"document"` // Hash of the document without seen and log
	Level    protocol.ProofLevel  `json:"level"`
	Author   protocol.AuthorProof `json:"author"`
}

// ErrMalformed: the bytes are not a proof document.
var ErrMalformed = errors.New("not a proof document")

// Hash returns "sha256:" and the hex SHA-256 of a JSON value in the form of RFC 8785.
func Hash(raw []byte) (string, error) {
	canonical, err := strictjson.Canonical(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// bare is the hash of a document without seen and log. The members are those that were received.
func bare(raw []byte) (string, error) {
	var all map[string]json.RawMessage
	if err := (strictjson.Limits{MaxBytes: MaxDocument}).DecodeLoose(raw, &all); err != nil {
		return "", err
	}
	delete(all, "seen")
	delete(all, "log")
	canonical, err := strictjson.CanonicalObject(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Seal completes a document of a node: the hash of the object, and what the node signs. At is when it saw the object as it is. The
// same document, time and key give the same bytes.
func Seal(d Document, node string, at time.Time, level protocol.ProofLevel, author protocol.AuthorProof, pair key.Pair) ([]byte, error) {
	var err error
	d.Version = Version
	if d.Subject.Hash, err = Hash(d.Subject.Object); err != nil {
		return nil, err
	}
	d.Seen = ""
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	seen := Seen{Issuer: node, Subject: d.Subject.ID, At: at.Unix(), Object: d.Subject.Hash, Level: level, Author: author}
	if seen.Document, err = bare(raw); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(seen)
	if err != nil {
		return nil, err
	}
	if d.Seen, err = pair.SignCompact(payload, SeenType); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// Parse reads a document strictly: unknown and repeated members are refused. It checks nothing else but the version. Errors wrap
// ErrMalformed.
func Parse(raw []byte) (Document, error) {
	var d Document
	if len(raw) > MaxDocument {
		return d, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxDocument)
	}
	if err := strictjson.Decode(raw, &d); err != nil {
		return d, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if d.Version != Version {
		return d, fmt.Errorf("%w: version %d, want %d", ErrMalformed, d.Version, Version)
	}
	return d, nil
}
