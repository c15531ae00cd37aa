// Package qr draws a text as a QR code (ISO/IEC 18004) that a phone reads from a screen: error
// correction level M and a quiet zone of four modules, dark on light. It draws no logo, which would
// use up the error correction that reflections need.
package qr

import (
	"bytes"
	"fmt"
	"strconv"

	"rsc.io/qr"
)

const (
	quiet   = 4   // modules of light margin on each side, ISO/IEC 18004 §6.3.8
	maxText = 800 // bytes; more gives modules that are too small on a phone's screen
)

// A Code is an encoded text.
type Code struct {
	code *qr.Code
}

// Encode encodes a text of at most 800 bytes.
func Encode(text string) (Code, error) {
	if text == "" || len(text) > maxText {
		return Code{}, fmt.Errorf("a QR code takes 1 to %d bytes here, not %d", maxText, len(text))
	}
	c, err := qr.Encode(text, qr.M)
	if err != nil {
		return Code{}, fmt.Errorf("encode a QR code: %w", err)
	}
	return Code{c}, nil
}

// Modules returns the side of the code in modules, quiet zone included.
func (c Code) Modules() int { return c.code.Size + 2*quiet }

// SVG returns a drawing without script, style or reference. Its viewBox counts modules; it scales
// to the size that the page gives it, with sharp edges. label is its text alternative.
func (c Code) SVG(label string) []byte {
	var b bytes.Buffer
	side := strconv.Itoa(c.Modules())
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + side + ` ` + side + `" shape-rendering="crispEdges" role="img">`)
	b.WriteString("<title>")
	escape(&b, label)
	b.WriteString(`</title><path fill="#fff" d="M0 0h` + side + `v` + side + `H0z"/><path d="`)
	for y := range c.code.Size {
		for x := 0; x < c.code.Size; {
			run := 0 // dark modules from here, drawn as one rectangle
			for x+run < c.code.Size && c.code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x+quiet, y+quiet, run, run)
			}
			x += run + 1
		}
	}
	b.WriteString(`"/></svg>`)
	return b.Bytes()
}

func escape(b *bytes.Buffer, text string) {
	for _, r := range text {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
}
