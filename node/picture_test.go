package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// pictureOf is a PNG of one colour.
func pictureOf(t testing.TB, c color.Color, w, h int) string {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.Set(i%w, i/w, c)
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.String()
}

// TestPicture: a picture that an owner sends is shown by every door in sizes of ours, from a path that runs nothing, until it is
// replaced or removed, or its profile is hidden or deleted; then it is served no more, and its bytes are deleted.
func TestPicture(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		h.Business("rao", "")
		auth := []string{"Authorization", "Bearer " + h.OwnerToken("rao"), "Content-Type", "image/png"}
		bearer := auth[:2]
		h.Ask("PUT", "/api/owner/merchant/items/dosa", `{"name":"Dosa","price":{"currency":"INR","amount":"80"}}`, bearer...).Is(200)
		require.Equal(t, 404, h.Ask("GET", "/api/owner/picture", "", bearer...).Code)

		put := func(query, body string) (p protocol.Picture) {
			t.Helper()
			h.Ask("PUT", "/api/owner/picture"+query, body, auth...).Is(200).Into(&p)
			return p
		}
		get := func(address string) nodetest.Answer {
			return h.Ask("GET", strings.TrimPrefix(address, h.Base), "")
		}
		red := pictureOf(t, color.RGBA{R: 0xff, A: 0xff}, 1200, 600)
		shop := put("?alt="+url.QueryEscape("The shop <b>from</b> the street"), red)
		dosa := put("?sku=dosa&alt=A+dosa", pictureOf(t, color.RGBA{B: 0xff, A: 0xff}, 300, 300))
		require.Equal(t, []any{960, 480, "The shop <b>from</b> the street"}, []any{shop.Width, shop.Height, shop.Alt})
		require.Equal(t, 404, h.Ask("PUT", "/api/owner/picture?sku=idli", red, auth...).Code)
		require.Equal(t, 415, h.Ask("PUT", "/api/owner/picture", red, bearer[0], bearer[1], "Content-Type", "image/svg+xml").Code)
		require.Equal(t, 422, h.Ask("PUT", "/api/owner/picture", "<svg/>", auth...).Code)
		require.Equal(t, 413, h.Ask("PUT", "/api/owner/picture", strings.Repeat("x", protocol.MaxPictureUpload+1), auth...).Code)
		require.Equal(t, 403, h.Ask("PUT", "/api/owner/picture?handle=asha", red, auth...).Code)

		for edge, want := range map[string]int{"960": 960, "320": 320, "96": 96} {
			a := get(strings.Replace(shop.URL, "-960", "-"+edge, 1)).Is(200)
			m, err := jpeg.DecodeConfig(a.Body)
			require.NoError(t, err)
			require.Equal(t, want, m.Width)
			for name, value := range map[string]string{"Content-Type": "image/jpeg", "Cache-Control": "public, max-age=31536000, immutable",
				"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"} {
				require.Equal(t, value, a.Header().Get(name))
			}
			require.Equal(t, 304, h.Ask("GET", strings.TrimPrefix(shop.URL, h.Base), "", "If-None-Match", get(shop.URL).Header().Get("ETag")).Code)
		}
		for _, name := range []string{"x", "-960.jpg", strings.Repeat("0", 64) + "-960.jpg", "../storage", "%2e%2e%2fx",
			strings.TrimSuffix(strings.TrimPrefix(shop.URL, h.Base+protocol.PicturePath), "-960.jpg") + "-961.jpg"} {
			require.Contains(t, []int{404, 400, 301}, h.Ask("GET", protocol.PicturePath+name, "").Code, name)
		}

		profile := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/rao", ""))
		require.Equal(t, shop, *profile.Picture)
		item := nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/rao", "")).Items[0]
		require.Equal(t, protocol.Media{Type: "image", URL: dosa.URL, Alt: "A dosa"}, item.Media[0])
		require.Equal(t, dosa.URL, *item.Image)
		page := nodetest.ParsePage(t, "/@rao", h.Ask("GET", "/@rao", "", "Accept", "text/html").Is(200).Body.String())
		var shown []string
		for _, m := range page.All("img") {
			require.True(t, strings.HasPrefix(nodetest.Attr(m, "src"), "/"), "no page loads a picture from elsewhere")
			shown = append(shown, nodetest.Attr(m, "src")+" "+nodetest.Attr(m, "alt"))
		}
		path := func(p protocol.Picture, edge string) string {
			return strings.Replace(strings.TrimPrefix(p.URL, h.Base), "-960", "-"+edge, 1)
		}
		require.Contains(t, shown, path(shop, "320")+" "+shop.Alt)
		require.Contains(t, shown, path(dosa, "320")+" A dosa")
		require.Equal(t, shop.URL, nodetest.Attr(page.Find("meta", "property", "og:image"), "content"))
		require.Contains(t, h.Ask("GET", "/merchants", "", "Accept", "text/html").Body.String(), `src="/picture/@rao"`)
		require.Equal(t, "image/jpeg", get("/picture/@rao").Is(200).Header().Get("Content-Type"))
		actor := h.Ask("GET", "/ap/agents/rao", "", "Accept", "application/activity+json").Is(200).Body.String()
		require.Contains(t, actor, shop.URL)

		// An item that is written again, by hand or by a file, keeps its picture.
		h.Ask("PUT", "/api/owner/merchant/items/dosa", `{"name":"Masala dosa","price":{"currency":"INR","amount":"90"}}`, bearer...).Is(200)
		h.Ask("POST", "/api/owner/merchant/items/import", "sku,name,price\ndosa,Dosa of a file,95\n", bearer[0], bearer[1], "Content-Type", "text/csv").Is(200)
		item = nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/rao", "")).Items[0]
		require.Equal(t, []string{"Dosa of a file", dosa.URL}, []string{item.Name, *item.Image})

		pruned := func() (all int) { // rows of pictures that nothing uses: one, and one for each size
			for gone := 1; gone > 0; all += gone {
				require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
					gone, err = tx.Pictures().Prune(ctx)
					return err
				}))
			}
			return all
		}
		require.Zero(t, pruned())
		green := put("?alt=Green", pictureOf(t, color.RGBA{G: 0xff, A: 0xff}, 40, 40))
		require.Equal(t, []int{40, 40}, []int{green.Width, green.Height})
		require.Equal(t, 404, get(shop.URL).Code, "it was replaced")
		require.Equal(t, 4, pruned())
		h.Ask("DELETE", "/api/owner/picture?sku=dosa", "", bearer...).Is(204)
		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/picture?sku=dosa", "", bearer...).Code)
		require.Equal(t, 404, get(dosa.URL).Code)
		require.Nil(t, nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/rao", "")).Items[0].Image)

		state := func(s protocol.ProfileState) {
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().SetState(ctx, "rao", s, "spam")
				return err
			}))
		}
		get(green.URL).Is(200)
		state(protocol.ProfileSuspended)
		require.Equal(t, 404, get(green.URL).Code)
		a := get("/picture/@rao").Is(200)
		require.Equal(t, "image/svg+xml", a.Header().Get("Content-Type"))
		require.Equal(t, strings.ReplaceAll(get("/picture/@nobody").Is(200).Body.String(), ">N<", ""), strings.ReplaceAll(
			get("/picture/@nobody").Body.String(), ">N<", ""), "it is the same each time")
		state("")
		get(green.URL).Is(200)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "rao") }))
		require.Equal(t, 404, get(green.URL).Code)
		require.Equal(t, 8, pruned(), "of the item and of the profile")
	})
}

// TestPicture_Caps: a profile has so many pictures, and a node too.
func TestPicture_Caps(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Business("rao", "")
	file := func(n int) *storage.PictureFile {
		return &storage.PictureFile{Picture: storage.Picture{Hash: fmt.Sprintf("%064x", n), Width: 1, Height: 1}, Sizes: [3][]byte{{1}, {2}, {3}}}
	}
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for n := range protocol.MaxPictures {
			sku := fmt.Sprint("s", n)
			if _, err := tx.Items().Put(ctx, "rao", protocol.ItemDraft{SKU: sku, Name: "Thing"}); err != nil {
				return err
			}
			if err := tx.Pictures().Put(ctx, "rao", sku, file(n)); err != nil {
				return err
			}
		}
		require.ErrorIs(t, tx.Pictures().Put(ctx, "rao", "", file(1000)), storage.ErrFull)
		return nil
	}))
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Pictures().Put(ctx, "rao", "s1", file(1001))
	}))
}

// TestPicture_Moves: an archive has the pictures, and the next node makes them anew.
func TestPicture_Moves(t *testing.T) {
	t.Parallel()
	one, two := nodetest.NewMover(t), nodetest.NewMover(t)
	require.NoError(t, one.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		made, err := one.Archive.Picture(ctx, []byte(pictureOf(t, color.RGBA{R: 0xff, A: 0xff}, 64, 32)))
		if err != nil {
			return err
		}
		made.Alt = "Home"
		return tx.Pictures().Put(ctx, "home", "", made)
	}))
	var raw []byte
	require.NoError(t, one.Call(protocol.ExportArchive.Operation, map[string]any{"handle": "home"}, nil, &raw))
	_, err := two.Imports(raw, map[string]any{"replace": true})
	require.NoError(t, err)
	var p protocol.Profile
	require.NoError(t, json.Unmarshal(two.Ask("GET", "/api/public/agents/home", "").Is(200).Body.Bytes(), &p))
	require.NotNil(t, p.Picture)
	require.Equal(t, []any{"Home", 64, 32}, []any{p.Picture.Alt, p.Picture.Width, p.Picture.Height})
	two.Ask("GET", strings.TrimPrefix(p.Picture.URL, two.Base), "").Is(200)
}
