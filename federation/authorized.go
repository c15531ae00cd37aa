package federation

import (
	"errors"
	"net/http"
	"strings"
)

// authorized serves objects, collections and logs only to servers that sign their reads and are not refused, where the operator
// wants that (authorized fetch, as Mastodon calls it). Actors are for everyone, since a server that has never asked needs the
// keys in them to verify what we send. Pages and the other doors are public as before: this keeps refused servers from reading
// over ActivityPub, and no secrets.
func (f *Federation) authorized(next http.Handler) http.Handler {
	if !f.c.AuthorizedFetch {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost || isActor(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		reader, err := f.readerOf(r)
		if err == nil {
			err = f.admits(r.Context(), hostOf(reader))
		}
		if errors.Is(err, errBlocked) {
			err = refuse(http.StatusForbidden, "this node refuses the server that signed the request", nil)
		}
		if err != nil {
			private(w.Header())
			f.problem(w, err)
			return
		}
		next.ServeHTTP(&unshared{w}, r)
	})
}

// isActor reports whether a path is that of an actor of this node: /ap/board, /ap/agents/asha.
func isActor(path string) bool {
	name, ok := strings.CutPrefix(path, "/ap/agents/")
	if !ok {
		name, ok = strings.CutPrefix(path, "/ap/")
	}
	return ok && !strings.Contains(name, "/")
}

// private has no cache between this node and the reader keep the answer.
func private(head http.Header) {
	head.Set("Cache-Control", "private, no-store")
	head.Add("Vary", "Signature, Signature-Input")
}

// unshared is an answer for the reader alone.
type unshared struct{ http.ResponseWriter }

func (w *unshared) WriteHeader(status int) {
	private(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

func (w *unshared) Write(b []byte) (int, error) {
	private(w.Header())
	return w.ResponseWriter.Write(b)
}
