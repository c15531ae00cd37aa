package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// A Purpose is what a challenge is to be signed for. One for another purpose does not count.
type Purpose string

const (
	ByPasskey  Purpose = "passkey"     // to sign in with a passkey
	ByEthereum Purpose = "ethereum"    // to sign in with an Ethereum account
	NewPasskey Purpose = "new-passkey" // to add a passkey to an account
	ByAgent    Purpose = "agent"       // to sign in as an agent, which has no browser that a challenge could be bound to
)

// ChallengeLifetime is how long a challenge may be answered.
const ChallengeLifetime = 10 * time.Minute

// A Challenger makes challenges that are to be signed, without storing them: each carries its own
// MAC. That a challenge is answered once is left to the caller, who stores the key of one that was.
type Challenger struct {
	Key []byte // 32 random bytes, the same at all processes of a node
}

const (
	challengeHead = 16 + 8 // random bytes, and the time of its end in milliseconds
	challengeSize = challengeHead + 16
)

// New returns a challenge of 80 hexadecimal digits. Only who holds bound can answer it: the secret
// of a browser's sign-in cookie, or the id of a session.
func (c Challenger) New(p Purpose, bound string, now time.Time) string {
	raw := make([]byte, challengeHead, challengeSize)
	rand.Read(raw[:16])
	binary.BigEndian.PutUint64(raw[16:], uint64(now.Add(ChallengeLifetime).UnixMilli()))
	return hex.EncodeToString(append(raw, c.mac(raw, p, bound)...))
}

// Check reports whether a challenge was made here for this purpose and holder and has not ended.
// key names it among those that were answered, which have to be remembered until its end.
func (c Challenger) Check(text string, p Purpose, bound string, now time.Time) (key [16]byte, until time.Time, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != challengeSize || bound == "" || hex.EncodeToString(raw) != text {
		return key, until, false
	}
	until = time.UnixMilli(int64(binary.BigEndian.Uint64(raw[16:])))
	ok = hmac.Equal(raw[challengeHead:], c.mac(raw[:challengeHead], p, bound)) && now.Before(until)
	sum := sha256.Sum256(raw)
	return [16]byte(sum[:16]), until, ok
}

func (c Challenger) mac(head []byte, p Purpose, bound string) []byte {
	m := hmac.New(sha256.New, c.Key)
	m.Write(head)
	m.Write([]byte(string(p) + "\x00" + bound))
	return m.Sum(nil)[:challengeSize-challengeHead]
}
