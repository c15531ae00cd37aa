// Package passkeytest is an authenticator in software, for tests: it makes passkeys (ES256, without
// attestation) and signs with them as a browser and a phone do together.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"stoa/identity/passkey"
)

// Flags of authenticator data (WebAuthn §6.1).
const (
	present, verified, eligible, backedUp, attested = 0x01, 0x04, 0x08, 0x10, 0x40
)

// A Device holds one passkey. Its fields may be changed between ceremonies.
type Device struct {
	Origin, Domain     string
	User               string // id of the account
	Count              uint32 // goes up with each signature, unless it is 0
	Unverified         bool   // the device did not ask for a finger or a PIN
	Eligible, BackedUp bool
	Type               string // of the ceremony in the client data, "" for the right one
	Cross              bool   // the page was in a frame of another site

	id  []byte
	key *ecdsa.PrivateKey
}

// New returns a device with a new passkey that counts, for a site and an account.
func New(origin, domain, user string) *Device {
	d := &Device{Origin: origin, Domain: domain, User: user, Count: 1, id: make([]byte, 24)}
	rand.Read(d.id)
	d.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // the source never fails
	return d
}

// ID returns the id of the credential.
func (d *Device) ID() string { return encode(d.id) }

// Register returns what a browser gives for a new passkey.
func (d *Device) Register(challenge string) passkey.Registration {
	data := append(d.data(attested), make([]byte, 16)...) // no model is named
	data = binary.BigEndian.AppendUint16(data, uint16(len(d.id)))
	data = append(append(data, d.id...), d.cose()...)
	object := append([]byte{0xa3}, text("fmt")...)
	object = append(append(object, text("none")...), text("attStmt")...)
	object = append(append(append(object, 0xa0), text("authData")...), long(0x58, data)...)
	return passkey.Registration{ID: d.ID(), ClientData: encode(d.client("webauthn.create", challenge)), Attestation: encode(object)}
}

// Sign returns what a browser gives for a signature.
func (d *Device) Sign(challenge string) passkey.Assertion {
	if d.Count > 0 {
		d.Count++
	}
	data, client := d.data(0), d.client("webauthn.get", challenge)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(data[:len(data):len(data)], hash[:]...))
	sig, _ := ecdsa.SignASN1(rand.Reader, d.key, digest[:])
	return passkey.Assertion{ID: d.ID(), ClientData: encode(client), AuthenticatorData: encode(data), Signature: encode(sig), User: encode([]byte(d.User))}
}

func (d *Device) client(kind, challenge string) []byte {
	if d.Type != "" {
		kind = d.Type
	}
	raw, _ := json.Marshal(map[string]any{"type": kind, "challenge": encode([]byte(challenge)), "origin": d.Origin, "crossOrigin": d.Cross})
	return raw
}

func (d *Device) data(flags byte) []byte {
	flags |= present
	if !d.Unverified {
		flags |= verified
	}
	if d.Eligible {
		flags |= eligible
	}
	if d.BackedUp {
		flags |= backedUp
	}
	hash := sha256.Sum256([]byte(d.Domain))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), d.Count)
}

// cose is the public key as COSE writes it: kty EC2, alg ES256, crv P-256, x, y.
func (d *Device) cose() []byte {
	point, _ := d.key.PublicKey.Bytes() // 0x04, x, y
	b := []byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21}
	b = append(append(b, long(0x58, point[1:33])...), 0x22)
	return append(b, long(0x58, point[33:])...)
}

// text is a short text of CBOR.
func text(s string) []byte { return append([]byte{0x60 | byte(len(s))}, s...) }

// long is a byte string of CBOR of up to 255 bytes.
func long(kind byte, b []byte) []byte { return append([]byte{kind, byte(len(b))}, b...) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
