package pow

import (
	"bytes"
	"math"
)

// readSolution is decodeSolution for a solution as Encode writes it: these members in
// this order, without blanks or escapes. Anything else is not ok, and the decoder
// decides. A forged solution costs the node little more than its MAC this way.
func readSolution(raw []byte) (s Solution, ok bool) {
	r := reader{rest: raw, ok: true}
	p := &s.Challenge.Parameters
	r.skip(`{"challenge":{"parameters":{"algorithm":`)
	p.Algorithm = r.text()
	r.skip(`,"cost":`)
	p.Cost = int(r.number())
	r.skip(`,"data":{"aud":`)
	p.Data.Audience = r.text()
	r.skip(`,"kid":`)
	p.Data.KeyID = r.text()
	r.skip(`,"purpose":`)
	p.Data.Purpose = r.text()
	if r.has(`,"text":`) {
		p.Data.Text = r.text()
	}
	r.skip(`},"expiresAt":`)
	p.ExpiresAt = r.number()
	r.skip(`,"keyLength":`)
	p.KeyLength = int(r.number())
	r.skip(`,"keyPrefix":`)
	p.KeyPrefix = r.text()
	r.skip(`,"nonce":`)
	p.Nonce = r.text()
	r.skip(`,"salt":`)
	p.Salt = r.text()
	r.skip(`},"signature":`)
	s.Challenge.Signature = r.text()
	r.skip(`},"solution":{"counter":`)
	counter := r.number()
	if r.has(`,"derivedKey":`) {
		s.Solution.DerivedKey = r.text()
	}
	r.skip(`}}`)
	if !r.ok || len(r.rest) > 0 || counter > math.MaxUint32 {
		return Solution{}, false
	}
	s.Solution.Counter = uint32(counter)
	return s, true
}

// A reader takes pieces off the front of rest, and is not ok once one is not there.
type reader struct {
	rest []byte
	ok   bool
}

func (r *reader) has(word string) bool {
	if len(r.rest) < len(word) || string(r.rest[:len(word)]) != word {
		return false
	}
	r.rest = r.rest[len(word):]
	return true
}

func (r *reader) skip(word string) { r.ok = r.ok && r.has(word) }

// text takes a string that is plain.
func (r *reader) text() string {
	if !r.ok || !r.has(`"`) {
		r.ok = false
		return ""
	}
	n := bytes.IndexByte(r.rest, '"')
	if n < 0 {
		r.ok = false
		return ""
	}
	s := string(r.rest[:n])
	r.rest, r.ok = r.rest[n+1:], plain(s)
	return s
}

// number takes a whole number that is not negative, of at most 15 digits.
func (r *reader) number() (n int64) {
	digits := 0
	for ; digits < len(r.rest) && r.rest[digits] >= '0' && r.rest[digits] <= '9' && digits < 16; digits++ {
		n = 10*n + int64(r.rest[digits]-'0')
	}
	if digits == 0 || digits > 15 || digits > 1 && r.rest[0] == '0' {
		r.ok = false
	}
	r.rest = r.rest[digits:]
	return n
}
