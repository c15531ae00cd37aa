package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
)

// Networks turns client addresses into keyed hashes, so that limits and
// distinct reporters can be told apart and no address is kept. Key is a secret
// of the deployment, at least 16 bytes.
type Networks struct{ Key []byte }

// Of is the keyed hash of the network of an address: the address itself for
// IPv4, the /56 for IPv6, which is what one subscriber usually gets (contract §1).
func (n Networks) Of(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(56); err == nil {
			addr = p.Addr()
		}
	}
	raw := addr.As16()
	h := hmac.New(sha256.New, n.Key)
	h.Write(raw[:])
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
