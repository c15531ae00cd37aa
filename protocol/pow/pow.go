// Package pow is the proof of work: the challenge, its canonical bytes, the search for a solution
// and its verification. It is the ALTCHA version 2 format with the key derivation PBKDF2/SHA-256,
// so that unmodified ALTCHA clients solve the challenges. It has no clock, no secret and no state:
// the issuer signs challenges, checks their time and spends them (identity/proof, storage).
package pow

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"stoa/protocol/pow/kdf"
)

// Algorithm is the only key derivation this node issues and accepts.
const Algorithm = "PBKDF2/SHA-256"

// Bounds of a solution.
const (
	MaxSolutionBytes = 4096 // JSON of a solution, before base64
	maxCost          = 100_000
)

// A Challenge is what a writer gets: parameters, the issuer's MAC over them and an unsigned hint
// about the expected work.
type Challenge struct {
	Parameters Parameters `json:"parameters"`
	Signature  string     `json:"signature" doc:"Hex HMAC-SHA-256 over the canonical parameters."`
	Hint       *Hint      `json:"hint,omitempty"`
}

// Parameters of a challenge. The members are in alphabetical order, so that encoding the struct
// gives the canonical bytes.
type Parameters struct {
	Algorithm string `json:"algorithm" example:"PBKDF2/SHA-256"`
	Cost      int    `json:"cost" doc:"PBKDF2 iterations per attempt."`
	Data      Data   `json:"data"`
	ExpiresAt int64  `json:"expiresAt" doc:"Unix seconds."`
	KeyLength int    `json:"keyLength" doc:"Bytes to derive."`
	KeyPrefix string `json:"keyPrefix" doc:"Lower-case hex the derived key must start with."`
	Nonce     string `json:"nonce" doc:"16 bytes, hex."`
	Salt      string `json:"salt" doc:"16 bytes, hex."`
}

// Data binds a challenge to its issuer and purpose.
type Data struct {
	Audience string `json:"aud" doc:"Host of the issuing node."`
	KeyID    string `json:"kid" doc:"Day of the signing secret."`
	Purpose  string `json:"purpose" enum:"contact,board,bid,meeting,report,join"`
	Text     string `json:"text,omitempty" pattern:"^[0-9a-f]{32}$" doc:"Digest of the only text that the challenge is for, when that is similar to others."`
}

// A Hint says how much work to expect. It is not signed.
type Hint struct {
	Level     int `json:"level" minimum:"0" maximum:"7"`
	MeanTries int `json:"meanTries"`
}

// A Solution is what a writer sends back.
type Solution struct {
	Challenge Challenge `json:"challenge"`
	Solution  Answer    `json:"solution" doc:"The solution."`
}

// An Answer is the counter and, if the writer sends it, the key that it derives.
type Answer struct {
	Counter    uint32  `json:"counter" doc:"The counter that solves the challenge."`
	DerivedKey string  `json:"derivedKey,omitempty" doc:"The key derived with the counter, in hex; may be left out."`
	Time       float64 `json:"time,omitempty" doc:"Milliseconds needed; ignored."`
}

// ErrShape is returned for a solution that cannot be parsed.
var ErrShape = errors.New("not a proof of work")

// Canonical returns the bytes that the issuer signs: members sorted at every level, no spaces, no
// HTML escaping.
func (p Parameters) Canonical() []byte {
	for _, s := range []string{p.Algorithm, p.Data.Audience, p.Data.KeyID, p.Data.Purpose, p.Data.Text, p.KeyPrefix, p.Nonce, p.Salt} {
		if !plain(s) {
			return p.encode()
		}
	}
	b := make([]byte, 0, 320)
	b = append(append(b, `{"algorithm":"`...), p.Algorithm...)
	b = strconv.AppendInt(append(b, `","cost":`...), int64(p.Cost), 10)
	b = append(append(b, `,"data":{"aud":"`...), p.Data.Audience...)
	b = append(append(b, `","kid":"`...), p.Data.KeyID...)
	b = append(append(b, `","purpose":"`...), p.Data.Purpose...)
	if p.Data.Text != "" {
		b = append(append(b, `","text":"`...), p.Data.Text...)
	}
	b = strconv.AppendInt(append(b, `"},"expiresAt":`...), p.ExpiresAt, 10)
	b = strconv.AppendInt(append(b, `,"keyLength":`...), int64(p.KeyLength), 10)
	b = append(append(b, `,"keyPrefix":"`...), p.KeyPrefix...)
	b = append(append(b, `","nonce":"`...), p.Nonce...)
	b = append(append(b, `","salt":"`...), p.Salt...)
	return append(b, `"}`...)
}

// plain reports whether a string needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// encode is Canonical with the JSON encoder, for strings that need escapes.
func (p Parameters) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		panic(err) // strings and integers always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// MAC returns the hex HMAC-SHA-256 of the canonical parameters under secret.
func (p Parameters) MAC(secret []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write(p.Canonical())
	return hex.EncodeToString(h.Sum(nil))
}

// Authentic reports, in constant time, whether the challenge has the MAC of secret.
func (c Challenge) Authentic(secret []byte) bool {
	return subtle.ConstantTimeCompare([]byte(c.Parameters.MAC(secret)), []byte(c.Signature)) == 1
}

// Parse parses a solution: JSON, a JSON string that contains it, or the base64 of that JSON
// (standard or URL alphabet). Unknown members are refused, so that nothing unsigned is accepted.
func Parse(raw []byte) (Solution, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || len(raw) > MaxSolutionBytes*4/3+4 {
		return Solution{}, fmt.Errorf("%w: %d bytes", ErrShape, len(raw))
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return Solution{}, fmt.Errorf("%w: %v", ErrShape, err)
		}
		raw = bytes.TrimSpace([]byte(text))
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		text := bytes.Clone(bytes.TrimRight(raw, "="))
		for i, c := range text { // of the URL alphabet
			switch c {
			case '-':
				text[i] = '+'
			case '_':
				text[i] = '/'
			}
		}
		decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
		n, err := base64.RawStdEncoding.Decode(decoded, text)
		if err != nil {
			return Solution{}, fmt.Errorf("%w: neither JSON nor base64", ErrShape)
		}
		raw = decoded[:n]
	}
	s, ok := readSolution(raw)
	if !ok {
		var err error
		if s, err = decodeSolution(raw); err != nil {
			return Solution{}, err
		}
	}
	p := s.Challenge.Parameters
	if p.Algorithm != Algorithm || p.Cost < 1 || p.Cost > maxCost || p.KeyLength < 16 || p.KeyLength > 64 || len(p.KeyPrefix) > 16 {
		return Solution{}, fmt.Errorf("%w: parameters this node does not issue", ErrShape)
	}
	return s, nil
}

func decodeSolution(raw []byte) (s Solution, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Solution{}, fmt.Errorf("%w: %v", ErrShape, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Solution{}, fmt.Errorf("%w: text after the object", ErrShape)
	}
	return s, nil
}

// Check derives the key of the counter and compares it. It costs one key derivation, unless a
// claimed key cannot be right.
func (s Solution) Check() bool {
	p := s.Challenge.Parameters
	claimed := s.Solution.DerivedKey
	if claimed != "" && (!strings.HasPrefix(claimed, p.KeyPrefix) || len(claimed) != 2*p.KeyLength) {
		return false
	}
	key, err := p.derive(s.Solution.Counter)
	if err != nil {
		return false
	}
	derived := hex.EncodeToString(key)
	return strings.HasPrefix(derived, p.KeyPrefix) && (claimed == "" || subtle.ConstantTimeCompare([]byte(derived), []byte(claimed)) == 1)
}

func (p Parameters) derive(n uint32) ([]byte, error) {
	nonce, err := hex.DecodeString(p.Nonce)
	if err != nil {
		return nil, err
	}
	salt, err := hex.DecodeString(p.Salt)
	if err != nil {
		return nil, err
	}
	return kdf.Key(string(binary.BigEndian.AppendUint32(nonce, n)), salt, p.Cost, p.KeyLength)
}

// Solve tries counters from 0 until one fits or ctx ends.
func Solve(ctx context.Context, c Challenge) (Solution, error) {
	for n := uint32(0); ; n++ {
		if err := ctx.Err(); err != nil {
			return Solution{}, err
		}
		key, err := c.Parameters.derive(n)
		if err != nil {
			return Solution{}, err
		}
		if found := hex.EncodeToString(key); strings.HasPrefix(found, c.Parameters.KeyPrefix) {
			return Solution{Challenge: Challenge{Parameters: c.Parameters, Signature: c.Signature}, Solution: Answer{Counter: n, DerivedKey: found}}, nil
		}
		if n == 1<<32-1 {
			return Solution{}, errors.New("no counter solves this challenge")
		}
	}
}

// Encode returns the base64 form of a solution, for the Proof-Of-Work header and the form field
// altcha.
func (s Solution) Encode() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// A Level is one step of the difficulty ladder.
type Level struct {
	Cost   int
	Prefix string
}

// Ladder is the difficulty by level. The mean number of attempts is 16 to the power of the
// prefix's length; an attempt costs Cost iterations. One thread of a 2.5 GHz core needs 45 ms at
// level 0, 160 ms at level 2 (the usual one), 5 s at level 7.
var Ladder = [8]Level{
	{250, "00"}, {500, "00"}, {1000, "00"}, {2000, "00"},
	{250, "000"}, {500, "000"}, {1000, "000"}, {2000, "000"},
}

// MeanTries returns the expected number of attempts of a level.
func (l Level) MeanTries() int { return 1 << (4 * len(l.Prefix)) }
