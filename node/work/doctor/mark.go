package doctor

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"
)

// Path begins the addresses under which a node says what it saw of a request. The rest is a mark: the time, 16 random bytes and an
// HMAC-SHA-256 of both under a secret in the database, so that only who reads the database can ask, within markFor. The answer is about the
// request itself, and has a MAC too: another server cannot give it.
const Path = "/ap/doctor/"

const markFor = time.Minute

const (
	stampSize = 8 + 16
	markSize  = stampSize + sha256.Size
)

func mac(secret []byte, purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(purpose))
	h.Write(data)
	return h.Sum(nil)
}

func newMark(secret []byte, now time.Time) string {
	stamp := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	stamp = append(stamp, make([]byte, 16)...)
	rand.Read(stamp[8:])
	return base64.RawURLEncoding.EncodeToString(append(stamp, mac(secret, "ask", stamp)...))
}

// validMark reports whether a mark was made with the secret, a short time ago.
func validMark(secret []byte, mark string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(mark)
	if err != nil || len(raw) != markSize || subtle.ConstantTimeCompare(raw[stampSize:], mac(secret, "ask", raw[:stampSize])) != 1 {
		return false
	}
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(raw)), 0))
	return -markFor < age && age < markFor
}

// A page is what the node saw of a request.
type page struct {
	Host      string   `json:"host"`
	URI       string   `json:"uri"`
	Forwarded []string `json:"forwarded"` // the lines of X-Forwarded-For
	Remote    string   `json:"remote"`    // who connected
	Trusted   bool     `json:"trusted"`   // which is a proxy of the settings
	Version   string   `json:"version"`
	MAC       []byte   `json:"mac"` // of the mark
}

// Handler answers below Path: to a valid mark with what the node saw, otherwise as missing does.
func Handler(secret []byte, version string, trusted []netip.Prefix, missing http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark := r.PathValue("mark")
		if !validMark(secret, mark, time.Now()) {
			missing.ServeHTTP(w, r)
			return
		}
		p := page{Host: r.Host, URI: r.RequestURI, Forwarded: r.Header.Values("X-Forwarded-For"), Version: version,
			MAC: mac(secret, "answer", []byte(mark))}
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			addr := from.Addr().Unmap()
			p.Remote = addr.String()
			for _, n := range trusted {
				p.Trusted = p.Trusted || n.Contains(addr)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		json.NewEncoder(w).Encode(p)
	})
}
