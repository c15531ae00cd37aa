package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// GrantLifetime is how long a [Grant] is good.
const GrantLifetime = 15 * time.Minute

// GrantPrefix begins the text of every grant.
const GrantPrefix = "stoa_agent_"

// A Grant says that an Ethereum account has signed in as an ERC-8004 identity. It opens nothing by itself: whoever takes it asks the
// chain whether the account still controls the identity.
type Grant struct {
	Identity string `json:"i"` // eip155:<chainId>:<registry>:<agentId>, lower case
	Chain    uint64 `json:"c"`
	Account  string `json:"a"` // address in lower case
	Until    int64  `json:"u"` // seconds since 1970
}

// Seal returns a grant as a text with a MAC, of at most 400 bytes. Nothing is stored.
func (c Challenger) Seal(g Grant) string {
	raw, _ := json.Marshal(g) // cannot fail: texts and numbers only
	return GrantPrefix + base64.RawURLEncoding.EncodeToString(append(raw, c.grantMAC(raw)...))
}

// Open reads a grant that was sealed here and has not ended.
func (c Challenger) Open(text string, now time.Time) (g Grant, ok bool) {
	text, ok = strings.CutPrefix(text, GrantPrefix)
	if !ok || len(text) > 600 {
		return g, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) <= sha256.Size {
		return g, false
	}
	body, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !hmac.Equal(mac, c.grantMAC(body)) || json.Unmarshal(body, &g) != nil {
		return Grant{}, false
	}
	return g, now.Unix() < g.Until
}

func (c Challenger) grantMAC(body []byte) []byte {
	m := hmac.New(sha256.New, c.Key)
	m.Write([]byte("grant\x00"))
	m.Write(body)
	return m.Sum(nil)
}
