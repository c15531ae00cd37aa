package client

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	fileTimeout = time.Hour // of an exchange that carries a file
	maxFile     = 16 << 30  // bytes of a file that comes
)

// attach makes the file of a call the body of its request.
func (c *Client) attach(req *http.Request, p *plan) {
	for name, values := range p.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if p.op.Upload == 0 {
		return
	}
	media, _, _ := strings.Cut(p.op.UploadMedia, ", ")
	req.Header.Set("Content-Type", media)
	if p.file == nil {
		return
	}
	size, err := p.file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = p.file.Seek(0, io.SeekStart)
	}
	if err != nil || size == 0 {
		return // the node says what it misses
	}
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(p.file), size, nil
}

// transport is the client that has the time which the exchange may take.
func (c *Client) transport(p *plan) *http.Client {
	if p.op.Upload > 0 || p.op.GivesFile() && p.out != nil {
		return c.files
	}
	return c.o.HTTP
}
