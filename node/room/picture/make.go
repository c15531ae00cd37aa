package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"golang.org/x/image/webp"

	"stoa/protocol"
	"stoa/storage"
)

// Bounds of a picture that is sent. Decoding it takes up to 200 MB and some seconds.
const (
	maxPixels = 24_000_000
	maxCostly = 12_000_000 // of one whose decoder keeps 8 bytes or more of a pixel
	maxSide   = 20_000
	maxScans  = 100 // of a JPEG: each is a walk over all pixels
	quality   = 82
)

// A format is one that is read.
type format struct {
	magic  string
	at     int // where its magic is
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var formats = []format{
	{"\xff\xd8\xff", 0, jpeg.DecodeConfig, jpeg.Decode},
	{"\x89PNG\r\n\x1a\n", 0, png.DecodeConfig, png.Decode},
	{"WEBPVP8", 8, webp.DecodeConfig, webp.Decode},
	{"GIF8", 0, gif.DecodeConfig, gif.Decode}, // its first image
}

// deep are the models of 16 bits a colour.
var deep = []color.Model{color.RGBA64Model, color.NRGBA64Model, color.Gray16Model}

func fault(code, detail string) error {
	return protocol.Invalid(protocol.Fault{Pointer: "/file", Code: code, Detail: detail})
}

// Make decodes a picture that a stranger may have made, and encodes it anew in each size.
func Make(raw []byte) (made *storage.PictureFile, err error) {
	defer func() {
		if recover() != nil { // of a decoder
			made, err = nil, fault("damaged", "cannot be read; save it again with another program")
		}
	}()
	for _, f := range formats {
		if at := raw[min(f.at, len(raw)):]; bytes.HasPrefix(at, []byte(f.magic)) {
			return f.make(raw)
		}
	}
	return nil, fault("not-a-picture", "is no JPEG, PNG, WebP or GIF")
}

func (f format) make(raw []byte) (*storage.PictureFile, error) {
	c, err := f.config(bytes.NewReader(raw))
	if err != nil || c.Width < 1 || c.Height < 1 {
		return nil, fault("damaged", "cannot be read; save it again with another program")
	}
	isJPEG := f.at == 0 && raw[0] == 0xff
	most := maxPixels
	if isJPEG && bytes.Contains(raw, []byte{0xff, 0xc2}) || slices.Contains(deep, c.ColorModel) {
		most = maxCostly
	}
	switch {
	case c.Width > maxSide || c.Height > maxSide || c.Width*c.Height > most:
		return nil, fault("too-large", fmt.Sprintf("has %d times %d pixels; at most %d megapixels are taken", c.Width, c.Height, most/1_000_000))
	case isJPEG && bytes.Count(raw, []byte{0xff, 0xda}) > maxScans:
		return nil, fault("too-large", "has more scans than a picture needs; save it again with another program")
	}
	m, err := f.decode(bytes.NewReader(raw))
	if err != nil || m.Bounds().Empty() {
		return nil, fault("damaged", "cannot be read; save it again with another program")
	}
	if m.Bounds().Dx()*m.Bounds().Dy() > most { // the decoder has its own opinion
		return nil, fault("too-large", "has too many pixels")
	}
	way := 1
	if isJPEG {
		way = orientation(raw)
	}
	return encode(m, way)
}

func encode(m image.Image, way int) (*storage.PictureFile, error) {
	large := turn(shrink(m, protocol.PictureEdges[2]), way)
	made := &storage.PictureFile{Picture: storage.Picture{Width: large.Rect.Dx(), Height: large.Rect.Dy()}}
	for n, edge := range protocol.PictureEdges {
		size := large
		if n < 2 {
			size = shrink(large, edge)
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, size, &jpeg.Options{Quality: quality}); err != nil {
			return nil, err
		}
		made.Sizes[n] = b.Bytes()
	}
	sum := sha256.Sum256(made.Sizes[2])
	made.Hash = hex.EncodeToString(sum[:])
	return made, nil
}

// shrink returns a picture on white whose sides are at most so long: each pixel is the mean of those that it covers.
func shrink(from image.Image, most int) *image.RGBA {
	m, ok := from.(image.RGBA64Image)
	if !ok { // each decoder's is one
		panic("no RGBA64Image")
	}
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	ow, oh := w, h
	if longest := max(w, h); longest > most {
		ow, oh = max(1, w*most/longest), max(1, h*most/longest)
	}
	out := image.NewRGBA(image.Rect(0, 0, ow, oh))
	line, sum := make([]uint64, 3*ow+3), make([]uint64, 3*ow+3)
	for y := range h {
		clear(line)
		for x := range w {
			c := m.RGBA64At(b.Min.X+x, b.Min.Y+y)
			white := 0xffff - uint64(c.A)
			rgb := [3]uint64{uint64(c.R) + white, uint64(c.G) + white, uint64(c.B) + white}
			at := x * ow / w
			here := uint64(min((at+1)*w-x*ow, ow)) // of ow parts of the pixel; the others are in the next
			for i, v := range rgb {
				line[3*at+i] += v * here
				line[3*at+3+i] += v * (uint64(ow) - here)
			}
		}
		at := y * oh / h
		end := (at+1)*h - y*oh
		here := uint64(min(end, oh))
		for i, v := range line[:3*ow] {
			sum[i] += v * here
		}
		if end <= oh { // the line of the result is complete
			row := out.Pix[at*out.Stride:]
			for x := range ow {
				for i := range 3 {
					row[4*x+i] = uint8(sum[3*x+i] / uint64(w*h) >> 8)
				}
				row[4*x+3] = 0xff
			}
			for i, v := range line[:3*ow] {
				sum[i] = v * (uint64(oh) - here)
			}
		}
	}
	return out
}

// turn applies an orientation of EXIF (2.32 §4.6.5.1.8), 1 to 8.
func turn(m *image.RGBA, way int) *image.RGBA {
	if way < 2 || way > 8 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	ow, oh := w, h
	if way > 4 {
		ow, oh = h, w
	}
	out := image.NewRGBA(image.Rect(0, 0, ow, oh))
	for y := range oh {
		for x := range ow {
			fx, fy := x, y
			if way > 4 {
				fx, fy = y, x
			}
			if way == 2 || way == 3 || way == 7 || way == 8 {
				fx = w - 1 - fx
			}
			if way == 3 || way == 4 || way == 6 || way == 7 {
				fy = h - 1 - fy
			}
			copy(out.Pix[out.PixOffset(x, y):][:4], m.Pix[m.PixOffset(fx, fy):][:4])
		}
	}
	return out
}

// orientation is what EXIF says of a JPEG, 1 for nothing.
func orientation(raw []byte) int {
	for at := 2; at+4 <= len(raw) && raw[at] == 0xff && raw[at+1] != 0xda; {
		size := int(binary.BigEndian.Uint16(raw[at+2:])) // of the segment, without its marker
		if end := at + 2 + size; raw[at+1] == 0xe1 && size >= 2 && end <= len(raw) {
			if tiff, ok := bytes.CutPrefix(raw[at+4:end], []byte("Exif\x00\x00")); ok {
				return tiffOrientation(tiff)
			}
		}
		at += 2 + size
	}
	return 1
}

func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	const tag, short = 0x0112, 3
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	fields := tiff[at+2:]
	for n := int(order.Uint16(tiff[at:])); n > 0 && len(fields) >= 12; n, fields = n-1, fields[12:] {
		if order.Uint16(fields) == tag && order.Uint16(fields[2:]) == short {
			return int(order.Uint16(fields[8:]))
		}
	}
	return 1
}
