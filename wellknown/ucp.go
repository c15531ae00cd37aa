package wellknown

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"stoa/identity/key"
	"stoa/protocol"
)

// ucpAge is how long a UCP profile may be cached: at least a minute (UCP 2026-08-25, Hosting).
const ucpAge = 5 * time.Minute

// ucp is the business profile of the node in one release of the Universal Commerce Protocol: all
// merchants of the node are one marketplace. keys makes the current one a JWK Set of the node's keys,
// so that it is a key directory too.
func (w *WellKnown) ucp(version string) maker {
	member := "keys"
	if version != protocol.UCPVersions[0] {
		member = "signing_keys"
	}
	return func(r *http.Request) (document, error) {
		pairs, err := w.c.Keys.Node(r.Context())
		if err != nil {
			return document{}, fmt.Errorf("keys of the node: %w", err)
		}
		var keys []json.RawMessage
		for _, p := range pairs {
			raw, err := key.MarshalPublic(p.Published())
			if err != nil {
				return document{}, err
			}
			keys = append(keys, raw)
		}
		return jsonDocument("application/json", ucpAge, map[string]any{"ucp": protocol.UCPMetaOf(w.base, version), member: keys})
	}
}
