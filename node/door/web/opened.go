package web

import (
	"net/http"
	"strings"
	"time"

	"stoa/protocol"
)

// An opened is a page that a secret opens: of a bid, a meeting request, a conversation. The secret is never
// in an address that the node sees: it is in a cookie of this one path, which the form that began it sets,
// or in the fragment, which a script posts.
type opened struct {
	cookie   string // its name
	path     string // of the page, before the id
	id, open string // members of the operations' input: the id, and the secret
	days     int    // for which the browser keeps the cookie
}

var (
	openedBid     = opened{"stoa_bid", "/bids/", "id", "statusToken", 90}           // a slot's longest time
	openedMeeting = opened{"stoa_meeting", "/meetings/", "id", "statusToken", 120}  // from the request to 30 days after the meeting
	openedPost    = opened{"stoa_post", "/board/", "id", "deleteToken", 365}        // of an anonymous post, to delete it
	openedThread  = opened{"stoa_thread", "/threads/", "threadId", "readToken", 60} // twice as long as a silent thread stays open
)

// locked reports whether a page with an id answers a code because it was not opened.
func locked(kind, id string, code protocol.Code) bool {
	return protocol.IsID(kind, id) && (code == protocol.NotFound || code == protocol.Unauthorized)
}

// open lets this browser read what the secret opens.
func (s *Web) open(w http.ResponseWriter, o opened, id, secret string) {
	http.SetCookie(w, &http.Cookie{
		Name: o.cookie, Value: secret, Path: o.path + id, MaxAge: int(time.Duration(o.days) * 24 * time.Hour / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.Base, "https://"),
	})
}

// args names what the page is about, with the secret of the browser's cookie.
func (o opened) args(r *http.Request) map[string]any {
	args := map[string]any{o.id: r.PathValue("id")}
	if c, err := r.Cookie(o.cookie); err == nil {
		args[o.open] = c.Value
	}
	return args
}
