package web

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of the picture of a profile, or of an item of a shop, and how pictures are shown.

const ownPicturePath = "/account/picture"

func pictureAt(handle, sku string) string {
	v := url.Values{"handle": {handle}}
	if sku != "" {
		v.Set("item", sku)
	}
	return ownPicturePath + "?" + v.Encode()
}

// An ownPicture is what the page shows.
type ownPicture struct {
	SKU string // "" for the profile
	Has bool
	protocol.Picture
}

func (a *account) readPicture(s *Web, r *http.Request) error {
	if a.Picture.SKU = r.FormValue("sku"); a.Picture.SKU == "" {
		a.Picture.SKU = r.URL.Query().Get("item")
	}
	args := map[string]any{"handle": a.Handle}
	if a.Picture.SKU != "" {
		args["sku"] = a.Picture.SKU
	}
	err := s.invokeSignedIn(r, protocol.GetPicture.Operation, args, &a.Picture.Picture)
	a.Picture.Has = err == nil
	if protocol.CodeOf(err) == protocol.NotFound {
		return nil
	}
	return err
}

// putPicture sets the picture that a form brings.
func (s *Web) putPicture(w http.ResponseWriter, r *http.Request) {
	a := &account{Page: pageAt(ownPicturePath)}
	form, file, err := s.uploadForm(w, r, protocol.PutPicture.Operation, "file")
	f := newSent(form)
	if err == nil {
		var made protocol.Picture
		err = invokeUpload(s, r, protocol.PutPicture, f.args("handle", "sku", "alt"), file, &made)
	}
	if err == nil {
		redirect(w, r, pictureAt(f.handle, form.Get("sku"))+"&done="+protocol.PutPicture.Name)
		return
	}
	if f.handle == "" {
		f.handle = r.URL.Query().Get("handle")
	}
	s.refusedAccount(w, r, a, f, err)
}

func pictureBody(a *account) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		body := all{accountHead(a, "A picture says more than a name. It is shown with its text to who does not see it.")}
		if x := a.Picture; x.Has {
			body = append(body, sized("portrait", x.Picture, 320), in("p", x.Alt),
				posted("", "", "/account", ownKeys(protocol.RemovePicture.Name, a.Handle, ""), hidden("sku", x.SKU, "list", "item="+url.QueryEscape(x.SKU)),
					submitsQuietly("Remove the picture")))
		}
		body = append(body, pictureForm(a.sent(protocol.PutPicture.Name, a.Handle, ""), a.Handle, a.Picture.SKU))
		if a.Picture.SKU != "" {
			body = append(body, ahead(shopPath(itemsPath, a.Handle)+"&"+query("item", a.Picture.SKU), "Back to the item"))
		}
		return body.Render(ctx, w)
	})
}

func pictureForm(f *sent, handle, sku string) templ.Component {
	const at = "put_picture"
	return formOf(templ.Attributes{"class": "card form", "id": at, "action": ownPicturePath, "method": "post", "enctype": "multipart/form-data"}, all{
		ownKeys(at, handle, ""), hidden("sku", sku), ask(protocol.PutPicture.Operation, f, at, nil, line("alt", "What the picture shows, in words")),
		fileField(f, at, "file", protocol.MaxPictureUpload, "image/jpeg,image/png,image/webp,image/gif"), sends("Send the picture"), uploadProgress(),
	})
}

// sized is a picture in a size that is at least as large as it is drawn.
func sized(class string, p protocol.Picture, edge int) templ.Component {
	w, h := p.Width, p.Height
	if longest := max(w, h); longest > edge {
		w, h = max(1, w*edge/longest), max(1, h*edge/longest)
	}
	return img(class, protocol.PictureAddress(p.URL, edge), p.Alt, w, h)
}

func img(class, src, alt string, w, h int) templ.Component {
	return tag("img", "class", class, "src", src, "alt", alt, "width", strconv.Itoa(w), "height", strconv.Itoa(h), "loading", "lazy", "decoding", "async")
}

// portrait is the picture of a profile, or the mark that is made of its name.
func portrait(s *Web, p protocol.Profile) templ.Component {
	if p.Picture == nil {
		return face(p.Handle, 96)
	}
	x := *p.Picture
	x.URL = s.local(x.URL)
	return sized("portrait", x, 320)
}

// face stands for a profile of this node in lists.
func face(handle string, edge int) templ.Component {
	return img("face", protocol.PicturePath+"@"+handle, "", edge, edge)
}

// ownMedia is the picture of an item that this node has, nil for none: no page shows a picture of another site.
func (s *Web) ownMedia(i protocol.Item) templ.Component {
	for _, m := range i.Media {
		if at, ok := protocol.OwnPicture(s.Base, m.URL); ok {
			return img("ware-picture", protocol.PictureAddress(at, 320), m.Alt, 160, 160)
		}
	}
	return templ.NopComponent
}
