package federation

import (
	"crypto/sha256"
	"time"

	"stoa/protocol"
)

// usedSignatureAge is how long a signature of an author that was used for a post is
// remembered.
const usedSignatureAge = 10 * 365 * 24 * time.Hour

// usedSignature is the hash of the author's signature that a post carries. One
// signature is valid for one post, so that a node cannot publish an author's words
// again under new ids. signed is false for a post without a signature.
func usedSignature(p *protocol.StoredPost) (key [32]byte, signed bool) {
	proof := p.Evidence
	if proof == nil {
		proof = p.Statement
	}
	if proof == nil {
		return key, false
	}
	return sha256.Sum256(append([]byte("author's signature\x00"), proof...)), true
}
