package a2aapi

import (
	"crypto/ed25519"
	"unicode/utf16"

	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol/a2a"
)

// A CardKey signs cards.
type CardKey struct {
	Pair key.Pair
	ID   string // kid: the name of the key in the set at JKU
	JKU  string // where its public half is published
}

// sign signs a card's payload with each key (A2A 1.0 §8.4: JWS over the RFC 8785 form of the card
// without signatures). Verifiers of 2025 escape non-ASCII characters before they verify, so such a
// card also gets a signature over that form of the same content.
func sign(payload []byte, keys []CardKey) ([]a2a.Signature, error) {
	canonical, err := strictjson.Canonical(payload)
	if err != nil {
		return nil, err
	}
	var list []a2a.Signature
	add := func(form []byte, k CardKey) error {
		protected, signature, err := k.Pair.SignJWS(form, k.ID, k.JKU)
		list = append(list, a2a.Signature{Protected: protected, Signature: signature})
		return err
	}
	for _, k := range keys {
		if err := add(canonical, k); err != nil {
			return nil, err
		}
	}
	escaped := escape(canonical)
	if len(escaped) == len(canonical) {
		return list, nil
	}
	for _, k := range keys {
		if _, ok := k.Pair.Public().(ed25519.PublicKey); !ok {
			continue
		}
		if err := add(escaped, k); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// escape writes every non-ASCII character as \uXXXX. In JSON such characters occur only in
// strings.
func escape(canonical []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(canonical))
	for _, r := range string(canonical) {
		if r < 0x80 {
			out = append(out, byte(r))
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			out = append(out, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
		}
	}
	return out
}
