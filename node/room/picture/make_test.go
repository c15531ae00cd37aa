package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// A lossless WebP of two by one pixels, and a lossy one of one.
const (
	webpLossless = "UklGRh4AAABXRUJQVlA4TBEAAAAvAQAAAAfQ//73v/+BiOh/AAA="
	webpLossy    = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
)

func unbase(t testing.TB, text string) []byte {
	return must.Get(base64.StdEncoding.DecodeString(text))(t)
}

// halves is a picture that is red on the left, blue on the right, and transparent in its lower half.
func halves(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{R: 0xff, A: 0xff}
			if x >= w/2 {
				c = color.NRGBA{B: 0xff, A: 0xff}
			}
			if y >= h/2 {
				c.A = 0
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, m, nil))
	return b.Bytes()
}

// turned is a JPEG whose EXIF says an orientation.
func turned(t testing.TB, m image.Image, way byte) []byte {
	raw := jpegOf(t, m)
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00")
	exif = append(exif, way, 0, 0, 0, 0, 0, 0)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return bytes.Join([][]byte{raw[:2], segment, exif, raw[2:]}, nil)
}

// colours are those of the four corners of a picture, as letters.
func colours(t testing.TB, raw []byte) string {
	m := must.Get(jpeg.Decode(bytes.NewReader(raw)))(t)
	b, out := m.Bounds(), ""
	for _, at := range []image.Point{{2, 2}, {b.Dx() - 3, 2}, {2, b.Dy() - 3}, {b.Dx() - 3, b.Dy() - 3}} {
		r, g, bl, _ := m.At(at.X, at.Y).RGBA()
		switch {
		case r > 0xd000 && g > 0xd000 && bl > 0xd000:
			out += "w"
		case r > 0xa000:
			out += "r"
		case bl > 0xa000:
			out += "b"
		default:
			out += "?"
		}
	}
	return out
}

func gifOf(t testing.TB, m image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, gif.Encode(&b, m, nil))
	return b.Bytes()
}

// TestMake: each format becomes JPEG in three sizes, on white, not larger than it was, and nothing of the file but its pixels is kept.
func TestMake(t *testing.T) {
	t.Parallel()
	m := halves(2000, 1000)
	pal := image.NewPaletted(m.Rect, color.Palette{color.NRGBA{}, color.NRGBA{R: 0xff, A: 0xff}, color.NRGBA{B: 0xff, A: 0xff}})
	deepOne := image.NewNRGBA64(m.Rect)
	for y := range 1000 {
		for x := range 2000 {
			pal.Set(x, y, m.At(x, y))
			deepOne.Set(x, y, m.At(x, y))
		}
	}
	for name, raw := range map[string][]byte{"png": pngOf(t, m), "png with 16 bits": pngOf(t, deepOne), "png with a palette": pngOf(t, pal),
		"gif": gifOf(t, pal)} {
		made, err := Make(raw)
		require.NoError(t, err, name)
		require.Equal(t, []int{960, 480}, []int{made.Width, made.Height}, name)
		for n, edge := range protocol.PictureEdges {
			c := must.Get(jpeg.DecodeConfig(bytes.NewReader(made.Sizes[n])))(t)
			require.Equal(t, []int{edge, edge / 2}, []int{c.Width, c.Height}, name)
			require.Equal(t, "rbww", colours(t, made.Sizes[n]), name)
		}
		require.Regexp(t, "^[0-9a-f]{64}$", made.Hash)
		require.Equal(t, made.Hash, must.Get(Make(raw))(t).Hash)
	}
	for _, text := range []string{webpLossless, webpLossy} {
		require.LessOrEqual(t, must.Get(Make(unbase(t, text)))(t).Width, 2)
	}
	small := must.Get(Make(jpegOf(t, halves(50, 20))))(t)
	require.Equal(t, []int{50, 20}, []int{small.Width, small.Height})
	long := must.Get(Make(pngOf(t, image.NewGray(image.Rect(0, 0, 5000, 1)))))(t)
	require.Equal(t, []int{960, 1}, []int{long.Width, long.Height})
}

// TestMake_Orientation: a picture is upright, and what its camera wrote is gone.
func TestMake_Orientation(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for y := range 32 {
		for x := range 64 {
			c := color.RGBA{0xff, 0xff, 0xff, 0xff} // white, but the left half red above and blue below
			if x < 32 {
				c = color.RGBA{R: 0xff, A: 0xff}
				if y >= 16 {
					c = color.RGBA{B: 0xff, A: 0xff}
				}
			}
			m.SetRGBA(x, y, c)
		}
	}
	for way, want := range map[byte]string{0: "rwbw", 1: "rwbw", 2: "wrwb", 3: "wbwr", 4: "bwrw", 5: "rbww", 6: "brww", 7: "wwbr", 8: "wwrb", 9: "rwbw"} {
		made := must.Get(Make(turned(t, m, way)))(t)
		require.Equal(t, way >= 5 && way <= 8, made.Width < made.Height, way)
		require.Equal(t, want, colours(t, made.Sizes[2]), way)
		for _, size := range made.Sizes {
			require.NotContains(t, string(size), "Exif")
		}
	}
}

// TestMake_Refused: what is no picture, is damaged or costs too much is refused before it is decoded.
func TestMake_Refused(t *testing.T) {
	t.Parallel()
	wide := func(w, h uint32) []byte { // a PNG that says to be so large
		raw := pngOf(t, image.NewGray(image.Rect(0, 0, 1, 1)))
		binary.BigEndian.PutUint32(raw[16:], w)
		binary.BigEndian.PutUint32(raw[20:], h)
		binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29]))
		return raw
	}
	progressive := bytes.Replace(jpegOf(t, halves(8, 8)), []byte{0xff, 0xc0}, []byte{0xff, 0xc2}, 1)
	at := bytes.Index(progressive, []byte{0xff, 0xc2})
	binary.BigEndian.PutUint16(progressive[at+5:], 4000)
	binary.BigEndian.PutUint16(progressive[at+7:], 4000)
	for name, x := range map[string]struct {
		raw  []byte
		code string
	}{
		"nothing":                {nil, "not-a-picture"},
		"a GIF without an image": {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "damaged"},
		"a GIF with an empty image": {[]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff," +
			"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x02D\x01\x00;"), "damaged"},
		"SVG":                        {[]byte("<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"), "not-a-picture"},
		"a page":                     {[]byte("<html>"), "not-a-picture"},
		"half a JPEG":                {jpegOf(t, halves(80, 80))[:300], "damaged"},
		"half a PNG":                 {pngOf(t, halves(80, 80))[:60], "damaged"},
		"no WebP":                    {[]byte("RIFF\x00\x00\x00\x00WEBPVP8 zzzz"), "damaged"},
		"huge":                       {wide(19_000, 19_000), "too-large"},
		"25 megapixels":              {wide(5000, 5000), "too-large"},
		"too long":                   {wide(20_001, 1), "too-large"},
		"16 megapixels, progressive": {progressive, "too-large"},
		"many scans":                 {append(jpegOf(t, halves(8, 8)), bytes.Repeat([]byte{0xff, 0xda}, 200)...), "too-large"},
	} {
		_, err := Make(x.raw)
		e := protocol.AsError(err)
		require.NotNil(t, e, name)
		require.Equal(t, protocol.Validation, e.Code, name)
		require.Equal(t, []string{"/file", x.code}, []string{e.Faults[0].Pointer, e.Faults[0].Code}, name)
		require.False(t, strings.Contains(e.Faults[0].Detail, "panic"))
	}
}

// FuzzPicture: whatever is sent, an answer comes, and a picture that is made is one within its bounds.
func FuzzPicture(f *testing.F) {
	f.Add(pngOf(f, halves(20, 10)))
	f.Add(turned(f, halves(20, 10), 6))
	f.Add(unbase(f, webpLossless))
	f.Add(unbase(f, webpLossy))
	f.Add(gifOf(f, halves(20, 10)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if c, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil && c.Width*c.Height > 1_000_000 {
			t.Skip() // its time is that of BenchmarkMake
		}
		made, err := Make(raw)
		if err != nil {
			require.NotNil(t, protocol.AsError(err))
			require.Equal(t, protocol.Validation, protocol.AsError(err).Code)
			return
		}
		for n, edge := range protocol.PictureEdges {
			c := must.Get(jpeg.DecodeConfig(bytes.NewReader(made.Sizes[n])))(t)
			require.LessOrEqual(t, max(c.Width, c.Height), edge)
		}
	})
}

// BenchmarkMake: one picture of 24 megapixels.
func BenchmarkMake(b *testing.B) {
	m := image.NewRGBA(image.Rect(0, 0, 6000, 4000))
	for i := range m.Pix {
		m.Pix[i] = uint8(i * i >> 11)
	}
	for name, raw := range map[string][]byte{"jpeg": jpegOf(b, m), "png": pngOf(b, image.NewRGBA(m.Rect))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Make(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
