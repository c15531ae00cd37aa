package activity

import (
	"encoding/json"
	"slices"
	"strings"

	"stoa/protocol"
)

// A Site is what the documents of one node have in common. Base has no slash at the end; all
// ActivityPub ids are under Base+"/ap/" and never change.
type Site struct {
	Base              string
	Host              string // host[:port] of Base
	Icon              string // address of the picture of the node's own actors, a PNG; "" for none
	Software, Version string
	PublicKeyPEM      string // RSA, SPKI: the fediverse verifies requests with it
	Multikey          string // Ed25519, FEP-521a: proofs are verified with it

	Others func() []string // Multikeys that were, or will be, valid beside it; nil for none
}

// The actors of a node itself.
func (s Site) Node() string  { return s.Base + "/ap/node" }
func (s Site) Board() string { return protocol.BoardID(s.Base) }
func (s Site) Feed() string  { return s.Base + "/ap/feed" }
func (s Site) Anon() string  { return s.Base + "/ap/anon" }

// Agent returns the actor of a hosted profile.
func (s Site) Agent(handle string) string { return protocol.ActorID(s.Base, handle) }

// SharedInbox returns the inbox for every actor of the node.
func (s Site) SharedInbox() string { return s.Base + "/ap/inbox" }

// Log returns the board's numbered log.
func (s Site) Log() string { return s.Board() + "/log" }

// Posts returns the collection of the board's posts, the target of Add and Remove.
func (s Site) Posts() string { return s.Board() + "/posts" }

// MainKey and ProofKey return the key ids of an actor: RSA for requests, Ed25519 for proofs and
// for requests between stoa nodes.
func MainKey(actor string) string { return actor + "#main-key" }

// ProofKey returns the id of the actor's Ed25519 key.
func ProofKey(actor string) string { return actor + "#ed25519-key" }

// An Object is a document to write. Its keys are sorted, so the same object gives the same bytes.
type Object map[string]any

// Bytes writes the object as JSON without HTML escapes.
func (o Object) Bytes() ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// Contexts of what the node writes. The prefix of this service is inline: others would have to
// fetch a context URL, and some drop what they cannot fetch (Fedify, 2026).
var (
	postContext = []any{
		"https://www.w3.org/ns/activitystreams", "https://w3id.org/security/data-integrity/v2",
		Object{"Hashtag": "as:Hashtag", "sensitive": "as:sensitive", "stoa": Namespace},
	}
	noteContext  = append(slices.Clip(postContext), quotePolicyTerms)
	actorContext = []any{
		"https://www.w3.org/ns/activitystreams", "https://w3id.org/security/v1",
		"https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1",
		Object{
			"stoa": Namespace, "toot": "http://joinmastodon.org/ns#",
			"discoverable": "toot:discoverable", "indexable": "toot:indexable",
			"manuallyApprovesFollowers": "as:manuallyApprovesFollowers",
			"schema":                    "http://schema.org#", "PropertyValue": "schema:PropertyValue", "value": "schema:value",
		},
	}
	listContext = []any{"https://www.w3.org/ns/activitystreams", Object{"stoa": Namespace}}
)

// ownContexts are those contexts as the node writes them, which need not be read.
var ownContexts = func() map[string]bool {
	all := map[string]bool{}
	for _, c := range [][]any{postContext, noteContext, actorContext, listContext} {
		raw, err := Object{"@context": c}.Bytes()
		if err != nil {
			panic(err)
		}
		all[string(raw[len(`{"@context":`):len(raw)-1])] = true
	}
	return all
}()
