package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"sync"
)

// Networks turns client addresses into keyed hashes, so that limits and reporters can be told
// apart without storing addresses. Make one with NewNetworks; the zero value is not usable. It is
// safe for concurrent use.
type Networks struct {
	key []byte

	mu    sync.RWMutex // guards known
	known map[netip.Addr]string
}

// maxKnown is how many hashes are remembered, in memory only.
const maxKnown = 10_000

// NewNetworks returns Networks under a secret of the deployment, at least 16
// bytes.
func NewNetworks(key []byte) *Networks {
	return &Networks{key: key, known: map[netip.Addr]string{}}
}

// Of returns the keyed hash of an address's network: the address itself for IPv4, the /56 for
// IPv6, which is what one subscriber usually gets (contract §1).
func (n *Networks) Of(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(56); err == nil {
			addr = p.Addr()
		}
	}
	n.mu.RLock()
	hash, ok := n.known[addr]
	n.mu.RUnlock()
	if ok {
		return hash
	}
	raw := addr.As16()
	h := hmac.New(sha256.New, n.key)
	h.Write(raw[:])
	hash = base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[addr] = hash
	return hash
}
