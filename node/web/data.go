package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/dispatch"
	"stoa/protocol"
)

// The page of an account's data: everything of a profile as one file, and a profile from such a file.

// How long a file of an archive may take, and the parts of the form before it.
const (
	archiveLife = 20 * time.Minute
	maxPart     = 4 << 10 // bytes of a field
)

// export writes the archive of a profile.
func (s *Web) export(w http.ResponseWriter, r *http.Request, f *sent) error {
	res, err := s.invokeOwner(r, protocol.ExportArchive.Operation, f.args("handle", "passphrase"), "")
	if err != nil {
		return err
	}
	file, ok := res.Value.(protocol.File)
	if !ok {
		return protocol.Errorf(protocol.Internal, "export_archive gave %T", res.Value)
	}
	defer file.Close()
	head := w.Header()
	guard(head)
	head.Set("Content-Type", protocol.ExportArchive.Media)
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Length", strconv.FormatInt(file.Size(), 10))
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name()}))
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(archiveLife)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	io.Copy(w, file) // an error is the end of the connection
	return nil
}

// importForm imports the archive that a form has, or says what that would do.
func (s *Web) importForm(w http.ResponseWriter, r *http.Request) {
	a := &account{Page: pageAt("/account/data")}
	if state, err := s.state(r); err == nil && state.SignedIn {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(archiveLife)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			s.Fail(w, r, err)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, protocol.MaxArchiveUpload+maxForm)
	form, file, err := archiveForm(r)
	r.PostForm = form
	f := newSent(form)
	if err == nil {
		a.Report = &protocol.ImportReport{}
		err = s.importArchive(r, f, file, a.Report)
	}
	if err == nil {
		s.showAccount(w, r, a)
		return
	}
	s.refusedAccount(w, r, a, f, err)
}

// archiveForm reads the fields of a form up to its file, which is its last part.
func archiveForm(r *http.Request) (form url.Values, file io.Reader, err error) {
	form = url.Values{"do": {protocol.ImportArchive.Name}}
	parts, err := r.MultipartReader()
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextPart(); err != nil {
			break
		}
		if part.FormName() == "archive" {
			var first [1]byte // a form without a chosen file has an empty one
			if _, err := io.ReadFull(part, first[:]); err != nil {
				return form, nil, protocol.Invalid(protocol.Fault{Pointer: "/archive", Code: "required", Detail: "choose a file"})
			}
			return form, io.MultiReader(bytes.NewReader(first[:]), part), nil
		}
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(part, maxPart)); err == nil {
			form.Set(part.FormName(), string(text))
		}
	}
	return form, nil, protocol.Errorf(protocol.InvalidRequest, "the form has no file of an archive")
}

// importArchive does the operation; dry when the form says so.
func (s *Web) importArchive(r *http.Request, f *sent, file io.Reader, into *protocol.ImportReport) error {
	args := f.args("as", "passphrase")
	// The button that was pressed is a field after the file, so the address says that it only checks.
	args["dryRun"], args["replace"] = r.URL.Query().Has("check"), f.values.Get("replace") != ""
	raw, err := dispatch.JSON(args)
	if err != nil {
		return err
	}
	res, err := s.Table.Invoke(r.Context(), dispatch.Request{
		Op: protocol.ImportArchive.Name, Args: raw, Door: "page", Upload: file,
		Evidence: identity.Evidence{Network: s.Network(r), Session: session.Of(r, s.Base)},
	})
	if err != nil {
		return err
	}
	report, ok := res.Value.(protocol.ImportReport)
	if !ok {
		return protocol.Errorf(protocol.Internal, "import_archive gave %T", res.Value)
	}
	*into = report
	return nil
}
