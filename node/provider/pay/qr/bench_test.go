package qr_test

import (
	"testing"

	"stoa/node/provider/pay/qr"
)

func BenchmarkSVG(b *testing.B) {
	for b.Loop() {
		c, err := qr.Encode(texts[0])
		if err != nil || len(c.SVG("Pay")) == 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkPNG(b *testing.B) {
	for b.Loop() {
		c, err := qr.Encode(texts[0])
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.PNG(); err != nil {
			b.Fatal(err)
		}
	}
}
