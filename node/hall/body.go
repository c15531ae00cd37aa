package hall

import (
	"errors"
	"io"
	"net/http"

	"stoa/protocol"
)

// ReadBody returns the body of a request, of at most that many bytes, nil without
// one. A body that is encoded, too large or ends early is a *protocol.Error.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the body without Content-Encoding")
	}
	if r.ContentLength > most {
		return nil, bodyTooLarge(most)
	}
	size := int64(512)
	if r.ContentLength > 0 {
		size = r.ContentLength + 1
	}
	raw := make([]byte, 0, size)
	limited := http.MaxBytesReader(w, r.Body, most)
	for {
		n, err := limited.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if err == io.EOF {
			return raw, nil
		}
		if err != nil {
			if _, over := errors.AsType[*http.MaxBytesError](err); over {
				return nil, bodyTooLarge(most)
			}
			return nil, protocol.Errorf(protocol.InvalidRequest, "the body ended early")
		}
		if len(raw) == cap(raw) {
			raw = append(raw, 0)[:len(raw)]
		}
	}
}

func bodyTooLarge(most int64) error {
	return protocol.Errorf(protocol.TooLarge, "the body may have at most %d bytes", most)
}
