package pay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"stoa/protocol"
)

// MAC returns the HMAC-SHA256 of body in lower-case hex.
func MAC(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// Authentic reports whether signature is the MAC of body with one of the secrets. A provider signs
// retries with the secret of the first attempt, so that after a change both are needed. An empty
// secret authenticates nothing: anyone could compute that MAC.
func Authentic(secrets []string, body []byte, signature string) bool {
	if len(signature) != 2*sha256.Size {
		return false
	}
	good := false
	for _, secret := range secrets[:min(len(secrets), protocol.MaxWebhookSecrets)] { // each costs a hash of the whole body
		equal := hmac.Equal([]byte(MAC(secret, body)), []byte(signature)) // constant time
		good = good || secret != "" && equal
	}
	return good
}
