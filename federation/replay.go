package federation

import (
	"crypto/sha256"
	"time"

	"stoa/protocol"
)

// onceFor is how long it is remembered that an author's signature has been used
// for a post.
const onceFor = 10 * 365 * 24 * time.Hour

// signedOnce is the hash of the signature that a post carries of its author: one
// signature is good for one post, so that a node cannot repeat an author's word
// under new ids. signed is false for a post that carries none.
func signedOnce(p *protocol.StoredPost) (key [32]byte, signed bool) {
	proof := p.Evidence
	if proof == nil {
		proof = p.Statement
	}
	if proof == nil {
		return key, false
	}
	return sha256.Sum256(append([]byte("author's signature\x00"), proof...)), true
}
