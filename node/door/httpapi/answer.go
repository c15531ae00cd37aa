package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
)

// An answer is the rendered answer of a successful operation.
type answer struct {
	status       int
	media        string
	cacheControl string
	etag         string // "" when the answer has no validator
	body         []byte
}

func answerOf(op *protocol.Operation, body []byte) *answer {
	a := &answer{status: op.HTTP.Status, media: op.Media, body: body}
	if a.media == "" {
		a.media = "application/json"
	}
	switch {
	case op.Conditional:
		a.cacheControl = "private, no-cache"
	case op.NoStore || !op.ReadOnly:
		a.cacheControl = "no-store"
	case op.MaxAge > 0:
		a.cacheControl = "public, max-age=" + strconv.Itoa(int(op.MaxAge/time.Second))
	default:
		a.cacheControl = "public, no-cache"
	}
	if op.ReadOnly && !op.NoStore || op.Conditional || op.Versioned {
		a.etag = netx.Tag(body)
	}
	return a
}

func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head["Cache-Control"] = []string{a.cacheControl}
	if a.etag != "" {
		head["Etag"] = []string{a.etag}
		if a.cacheControl != "no-store" && netx.Unchanged(r, a.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return
	}
	head["Content-Type"] = []string{a.media}
	head["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	w.WriteHeader(a.status)
	w.Write(a.body)
}
