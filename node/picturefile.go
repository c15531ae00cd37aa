package node

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stoa/node/door/httpapi"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// picture serves a picture by its hash and size, which is the same for good, and by "@" and a handle what stands for a profile in
// lists: its picture, or a mark that is made of its name.
func (n *Node) picture(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	handle, ofProfile := strings.CutPrefix(name, "@")
	body, media, keep := []byte(nil), "image/jpeg", "public, max-age=31536000, immutable"
	err := n.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		if !ofProfile {
			body, err = pictureNamed(ctx, tx, name)
			return err
		}
		keep = "public, max-age=300"
		p, err := tx.Profiles().ByHandle(ctx, handle)
		switch {
		case err == nil && p.Picture != nil:
			body, err = tx.Pictures().Shown(ctx, p.Picture.Hash, protocol.PictureEdges[0])
			return err
		case err == nil:
			body, media = mark(handle, p.Draft.Name), "image/svg+xml"
		case errors.Is(err, storage.ErrNotFound): // of another node, or not shown: both look the same
			body, media, err = mark(handle, handle), "image/svg+xml", nil
		}
		return err
	})
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Resource-Policy", "cross-origin") // programs and other nodes show it
	if err != nil {
		head.Set("Cache-Control", "no-store")
		httpapi.WriteProblem(w, n.Base, protocol.DialectNone, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no such picture")))
		return
	}
	head.Set("Cache-Control", keep)
	netx.Serve(w, r, media, body)
}

func pictureNamed(ctx context.Context, tx *storage.Tx, name string) ([]byte, error) {
	hash, rest, _ := strings.Cut(strings.TrimSuffix(name, ".jpg"), "-")
	edge, err := strconv.Atoi(rest)
	if err != nil || !storage.IsPictureHash(hash) || name != fmt.Sprintf("%s-%d.jpg", hash, edge) || !slices.Contains(protocol.PictureEdges[:], edge) {
		return nil, storage.ErrNotFound
	}
	return tx.Pictures().Shown(ctx, hash, edge)
}

// markColours are dark enough for white letters.
var markColours = [...]string{"#7a4a00", "#8a2d3b", "#6b3a87", "#3a4f9e", "#00628f", "#006b5f", "#3f6b1f", "#6a5a2a"}

// mark is the picture of a profile without one: the first letters of its name, in a colour of its handle.
func mark(handle, name string) []byte {
	var letters []rune
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
		if first, _ := utf8.DecodeRuneInString(word); len(letters) < 2 && first != utf8.RuneError {
			letters = append(letters, unicode.ToUpper(first))
		}
	}
	var text strings.Builder
	xml.EscapeText(&text, []byte(string(letters))) // a Builder takes everything
	colour := markColours[crc32.ChecksumIEEE([]byte(handle))%uint32(len(markColours))]
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="96" height="96"><rect width="96" height="96" fill="%s"/>`+
		`<text x="48" y="60" font-size="36" font-family="sans-serif" text-anchor="middle" fill="#fff">%s</text></svg>`, colour, text.String())
}
