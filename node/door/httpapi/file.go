package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// A transfer of a file may take longer than other requests, an hour at most. It ends when nothing
// is transferred for a while, and an upload also when it is slower than leastRate on average.
const (
	fileLife  = time.Hour
	fileGrace = 20 * time.Second
	filePiece = 64 << 10
	leastRate = 8 << 10 // bytes a second
)

// sendFile writes a file and closes it.
func sendFile(w http.ResponseWriter, op *protocol.Operation, f protocol.File) {
	defer f.Close()
	head := w.Header()
	head["Content-Type"] = []string{op.Media}
	head["Cache-Control"] = []string{"no-store"}
	head["Content-Length"] = []string{strconv.FormatInt(f.Size(), 10)}
	head["Content-Disposition"] = []string{mime.FormatMediaType("attachment", map[string]string{"filename": f.Name()})}
	w.WriteHeader(op.HTTP.Status)
	control, end := http.NewResponseController(w), time.Now().Add(fileLife)
	for time.Now().Before(end) {
		if err := control.SetWriteDeadline(time.Now().Add(fileGrace)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return
		}
		if _, err := io.CopyN(w, f, filePiece); err != nil {
			return // the end of the file, or of the connection
		}
	}
}

// uploaded returns the body of a request that is a file. It reads nothing of it before the caller
// is admitted.
func uploaded(w http.ResponseWriter, r *http.Request, op *protocol.Operation) (io.Reader, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the file as it is, without Content-Encoding")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(strings.Split(op.UploadMedia, ", "), media) {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the file as Content-Type: %s", strings.ReplaceAll(op.UploadMedia, ", ", " or "))
	}
	if r.ContentLength > op.Upload {
		return nil, fileTooLarge(op)
	}
	return &upload{body: http.MaxBytesReader(w, r.Body, op.Upload), control: http.NewResponseController(w), op: op, start: time.Now()}, nil
}

func fileTooLarge(op *protocol.Operation) error {
	return protocol.Errorf(protocol.TooLarge, "the file may have at most %d bytes over HTTP", op.Upload)
}

// An upload extends the deadlines of its request while enough bytes arrive.
type upload struct {
	body    io.Reader
	control *http.ResponseController
	op      *protocol.Operation
	start   time.Time
	got     int64 // bytes
}

// due returns the time by which the next bytes must arrive.
func (u *upload) due(now time.Time) time.Time {
	due := now.Add(fileGrace)
	if slowest := u.start.Add(fileGrace + time.Duration(u.got)*time.Second/leastRate); slowest.Before(due) {
		return slowest
	}
	return due
}

func (u *upload) Read(p []byte) (int, error) {
	now := time.Now()
	due := u.due(now)
	switch {
	case now.Sub(u.start) > fileLife:
		return 0, protocol.Errorf(protocol.InvalidRequest, "the file took longer than an hour")
	case now.After(due):
		return 0, protocol.Errorf(protocol.InvalidRequest, "the file arrives slower than %d KiB a second", leastRate>>10)
	}
	// The room may take long to process the file, so the write deadline is the longest life of a transfer.
	if err := errors.Join(u.control.SetReadDeadline(due), u.control.SetWriteDeadline(now.Add(fileLife))); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := u.body.Read(p[:min(len(p), filePiece)])
	u.got += int64(n)
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return n, fileTooLarge(u.op)
	}
	if err != nil && err != io.EOF {
		return n, protocol.Errorf(protocol.InvalidRequest, "the file ended early")
	}
	return n, err
}
