package qr_test

import (
	"testing"

	"stoa/node/out/pay/qr"
)

func BenchmarkSVG(b *testing.B) {
	for b.Loop() {
		c, err := qr.Encode(texts[0])
		if err != nil || len(c.SVG("Pay")) == 0 {
			b.Fatal(err)
		}
	}
}
