package qr_test

import (
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/require"

	"stoa/node/out/pay/qr"
	"stoa/protocol/must"
)

// texts are links as they occur: short, with a long Devanagari name, and the longest.
var texts = []string{
	"upi://pay?pa=asha@okbank&pn=Asha%20Rao&am=1500.00&cu=INR&tr=BID01JDXYZ8Q&tn=Attention%20bid%2001JDXYZ8Q",
	"upi://pay?pa=asha.rao-1984_x@okhdfcbank&pn=%E0%A4%86%E0%A4%B6%E0%A4%BE%20%E0%A4%B0%E0%A4%BE%E0%A4%B5%20%E0%A4%B6%E0%A4%B0%E0%A5%8D%E0%A4%AE%E0%A4%BE" +
		"&am=100000.00&cu=INR&tr=BID01JDXYZ8Q01JDXYZ8Q01JDXYZ8Q1&tn=Attention%20bid%2001JDXYZ8Q",
	"https://rzp.io/i/nxrHnLJ",
	"upi://pay?pa=" + strings.Repeat("a", 787),
}

// decode reads an image with a decoder that shares no code with the encoder.
func decode(t *testing.T, img image.Image) string {
	t.Helper()
	bits := must.Get(gozxing.NewBinaryBitmapFromImage(img))(t)
	result := must.Get(qrcode.NewQRCodeReader().Decode(bits, nil))(t)
	require.Equal(t, "M", fmt.Sprint(result.GetResultMetadata()[gozxing.ResultMetadataType_ERROR_CORRECTION_LEVEL]))
	return result.GetText()
}

// TestSVG_Scanned decodes what a camera would see: smaller, on a dark page, with a corner hidden by
// a reflection.
func TestSVG_Scanned(t *testing.T) {
	t.Parallel()
	c := must.Get(qr.Encode(texts[0]))(t)
	img := drawn(t, c.SVG("Pay"), 8)
	side := img.Bounds().Dx()
	page := image.NewGray(image.Rect(0, 0, side+200, side+300))
	draw.Draw(page, page.Bounds(), image.NewUniform(color.Gray{30}), image.Point{}, draw.Src)
	at := image.Rect(100, 150, 100+side, 150+side)
	draw.Draw(page, at, img, image.Point{}, draw.Src)
	require.Equal(t, texts[0], decode(t, page), "the margin is part of the code")
	glare := image.Rect(at.Max.X-side/5, at.Max.Y-side/5, at.Max.X-side/10, at.Max.Y-side/10)
	draw.Draw(page, glare, image.White, image.Point{}, draw.Src)
	require.Equal(t, texts[0], decode(t, page))
}

// TestModules: a usual link has 41 modules and the margin; the longest still has 3 pixels a module
// on a page that is 360 pixels wide.
func TestModules(t *testing.T) {
	t.Parallel()
	c := must.Get(qr.Encode(texts[0]))(t)
	require.Equal(t, 41+8, c.Modules())
	c = must.Get(qr.Encode(texts[3]))(t)
	require.LessOrEqual(t, 3*c.Modules(), 360)
}

// drawn returns the picture of a drawing of ours, with so many pixels a module.
func drawn(t *testing.T, raw []byte, scale int) image.Image {
	t.Helper()
	var doc struct {
		ViewBox string `xml:"viewBox,attr"`
		Paths   []struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	require.NoError(t, xml.Unmarshal(raw, &doc))
	var side int
	must.Get(fmt.Sscanf(doc.ViewBox, "0 0 %d", &side))(t)
	require.Equal(t, fmt.Sprintf("0 0 %d %d", side, side), doc.ViewBox)
	require.Len(t, doc.Paths, 2)
	img := image.NewGray(image.Rect(0, 0, scale*side, scale*side))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	for part := range strings.SplitSeq(strings.TrimSuffix(doc.Paths[1].D, "z"), "z") {
		var x, y, w, back int
		_, err := fmt.Sscanf(part, "M%d %dh%dv1h-%d", &x, &y, &w, &back)
		require.NoError(t, err, part)
		require.Equal(t, w, back)
		draw.Draw(img, image.Rect(scale*x, scale*y, scale*(x+w), scale*(y+1)), image.Black, image.Point{}, draw.Src)
	}
	return img
}

// TestSVG draws the SVG's rectangles and decodes the result.
func TestSVG(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		c := must.Get(qr.Encode(text))(t)
		raw := c.SVG(`Pay <₹1,500> & "more"`)
		img := drawn(t, raw, 5)
		require.Contains(t, string(raw), `<title>Pay &lt;₹1,500&gt; &amp; "more"</title>`)
		require.Equal(t, 5*c.Modules(), img.Bounds().Dx())
		require.Equal(t, text, decode(t, img))
		require.Less(t, len(raw), 100<<10)
	}
}

func TestEncode_Bounds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", strings.Repeat("a", 801)} {
		_, err := qr.Encode(text)
		require.Error(t, err)
	}
}
