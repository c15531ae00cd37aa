package httpsig

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"testing"

	"stoa/protocol/must"
)

// BenchmarkEd25519Bare is the floor: the curve arithmetic over the same base.
func BenchmarkEd25519Bare(b *testing.B) {
	m, _, _, priv := vectorRequest(b)
	base := []byte(baseOf(b, m))
	pub, sig := priv.Public().(ed25519.PublicKey), ed25519.Sign(priv, base)
	b.ReportAllocs()
	for b.Loop() {
		if !ed25519.Verify(pub, base, sig) {
			b.Fatal("not verified")
		}
	}
}

func BenchmarkVerifyPost(b *testing.B) {
	m, body, k, _ := vectorRequest(b)
	v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: clock(epoch)}
	q := WritePolicy()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), m, body, q); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefuseForged must not cost more than BenchmarkVerifyPost.
func BenchmarkRefuseForged(b *testing.B) {
	m, body, k, _ := vectorRequest(b)
	sig := must.Get(base64.StdEncoding.DecodeString(m.Header.Get("Signature")[6 : 6+88]))(b)
	sig[40] ^= 1
	m.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(sig)+":")
	v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: clock(epoch)}
	q := WritePolicy()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), m, body, q); err == nil {
			b.Fatal("accepted")
		}
	}
}

// BenchmarkRefuseExpired is the price of a request that fails the cheap checks.
func BenchmarkRefuseExpired(b *testing.B) {
	m, body, k, _ := vectorRequest(b)
	v := &Verifier{Keys: anyKey(k), Now: clock(epoch.AddDate(1, 0, 0))}
	q := WritePolicy()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), m, body, q); err == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkSignRequest(b *testing.B) {
	_, body, _, priv := vectorRequest(b)
	r := must.Get(http.NewRequest("POST", "https://node.example/api/public/board?lang=en", bytes.NewReader(body)))(b)
	target := NewTarget("https", "node.example")
	b.ReportAllocs()
	for b.Loop() {
		r.Header = http.Header{"Content-Type": {"application/json"}, "Signature-Agent": {`sig1="https://agent.example"`}}
		if err := SignRequest(r, target, body, SignOptions{Key: priv, KeyID: "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", Created: epoch}); err != nil {
			b.Fatal(err)
		}
	}
}
