package web

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of an account's data: everything of a profile as one file, and a profile from such a file.

// maxPart is how long a field before the file of a form may be, in bytes.
const maxPart = 4 << 10

// export writes the archive of a profile.
func (s *Web) export(w http.ResponseWriter, r *http.Request, f *sent) error {
	res, err := s.invokeOwner(r, protocol.ExportArchive.Operation, f.args("handle", "passphrase"), "")
	if err != nil {
		return err
	}
	return sendFile(w, protocol.ExportArchive.Operation, res)
}

// importForm imports the archive that a form has, or says what that would do.
func (s *Web) importForm(w http.ResponseWriter, r *http.Request) {
	a := &account{Page: pageAt("/account/data")}
	form, file, err := s.uploadForm(w, r, protocol.ImportArchive.Operation, "archive")
	f := newSent(form)
	if err == nil {
		a.Report = &protocol.ImportReport{}
		args := f.args("as", "passphrase")
		// The button that was pressed is a field after the file, so the address says that it only checks.
		args["dryRun"], args["replace"] = r.URL.Query().Has("check"), f.values.Get("replace") != ""
		err = invokeUpload(s, r, protocol.ImportArchive, args, file, a.Report)
	}
	if err == nil {
		s.showAccount(w, r, a)
		return
	}
	s.refusedAccount(w, r, a, f, err)
}

// fileForm reads the fields of a form up to its file, which is its last part.
func fileForm(r *http.Request, op *protocol.Operation, field string) (form url.Values, file io.Reader, err error) {
	form = url.Values{"do": {op.Name}}
	parts, err := r.MultipartReader()
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextPart(); err != nil {
			break
		}
		if part.FormName() == field {
			var first [1]byte // a form without a chosen file has an empty one
			if _, err := io.ReadFull(part, first[:]); err != nil {
				return form, nil, protocol.Invalid(protocol.Fault{Pointer: "/" + field, Code: "required", Detail: "choose a file"})
			}
			return form, io.MultiReader(bytes.NewReader(first[:]), part), nil
		}
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(part, maxPart)); err == nil {
			form.Set(part.FormName(), string(text))
		}
	}
	return form, nil, protocol.Errorf(protocol.InvalidRequest, "the form has no file")
}

func exportForm(f *sent, handles []string) templ.Component {
	at := protocol.ExportArchive.Name
	return posted("card form", at, "/account", hidden("do", at), ask(protocol.ExportArchive.Operation, f, at, nil,
		choose("handle", "Of##which profile", ofProfiles(handles, "")).chosen(),
		line("passphrase", "Passphrase, 12 letters or more: only if the file shall have your private keys").hiddenText().with("autocomplete", "new-password")),
		sends("Download"))
}

type importCount struct {
	what string
	protocol.ImportCount
}

// importCounts are the kinds of things that an archive has any of.
func importCounts(x protocol.ImportReport) (counts []importCount) {
	for _, c := range []importCount{{english("Keys"), x.Keys}, {english("Private keys"), x.PrivateKeys}, {english("Posts"), x.Posts},
		{english("Conversations"), x.Threads}, {english("Callbacks"), x.Callbacks}, {english("Blocked writers"), x.Blocks}, {english("Meetings"),
			x.Meetings}, {english("Bids"), x.Bids}, {english("Orders"), x.Orders},
		{english("Order receipts"), x.Receipts}} {
		if c.New+c.Same+c.LeftOut > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}

func (c importCount) text(ctx context.Context) (text string) {
	for _, x := range []struct {
		n   int
		key string
	}{{c.New, english("%d new##imported things")}, {c.Same, english("%d here already")}, {c.LeftOut, english("%d left out")}} {
		if x.n > 0 {
			if text != "" {
				text += ", "
			}
			text += tr(ctx, x.key, x.n)
		}
	}
	return text
}
