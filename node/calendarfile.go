package node

import (
	"context"
	"net/http"
	"strings"

	"stoa/node/door/httpapi"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// calendarFile serves what a secret in the last part of the path opens, as iCalendar. Programs ask again
// with the ETag; nobody else keeps it.
func (n *Node) calendarFile(read func(ctx context.Context, tx *storage.Tx, secret string) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, ok := strings.CutSuffix(r.PathValue("file"), ".ics")
		var body []byte
		err := error(protocol.Errorf(protocol.NotFound, "the address ends in .ics"))
		if ok {
			err = n.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				body, err = read(ctx, tx, secret)
				return err
			})
		}
		head := w.Header()
		head.Set("Cache-Control", "private, no-cache")
		head.Set("X-Robots-Tag", "noindex")
		head.Set("Referrer-Policy", "no-referrer")
		if err != nil {
			httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err)
			return
		}
		head.Set("Content-Disposition", `attachment; filename="meetings.ics"`)
		netx.Serve(w, r, "text/calendar; charset=utf-8", body)
	})
}
