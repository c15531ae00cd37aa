package federation

import (
	"crypto/sha256"
	"time"

	"stoa/protocol"
)

// onceFor is how long it is remembered that an author's signature has been used
// for a post.
const onceFor = 10 * 365 * 24 * time.Hour

// signedOnce is what a post that carries its author's signature uses up: one
// signature is good for one post, so that a node cannot repeat an author's word
// under new ids. signed is false for a post that carries none.
func signedOnce(p *protocol.StoredPost) (s protocol.Spend, signed bool) {
	proof := p.Evidence
	if proof == nil {
		proof = p.Statement
	}
	if proof == nil {
		return s, false
	}
	sum := sha256.Sum256(append([]byte("author's signature\x00"), proof...))
	copy(s.Key[:], sum[:])
	s.Until, s.Code = time.Now().Add(onceFor), protocol.SignatureReplayed
	return s, true
}
