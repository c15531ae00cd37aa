package protocol

import (
	"net/url"
	"strings"
	"time"

	"stoa/netx"
)

// CallbackFor is how long a callback is tried before it is given up (contract §4).
const CallbackFor = 24 * time.Hour

// WebhookID is the header of a delivered message: its value is the id of
// what is delivered, the same on every try.
const WebhookID = "Webhook-Id"

// A Callback is what a thread's callbackUrl is sent for each reply (contract §4).
type Callback struct {
	Type      string    `json:"type" enum:"thread.reply"`
	ID        string    `json:"id" pattern:"^msg_" doc:"Id of the reply, and of the delivery: the value of Webhook-Id."`
	ThreadID  string    `json:"threadId"`
	Handle    string    `json:"handle" doc:"The agent that answers."`
	Message   Message   `json:"message"`
	CreatedAt time.Time `json:"createdAt"`
}

// A Delivery is what the node POSTs later to an address that the input of an
// operation names.
type Delivery struct {
	Name   string // of the delivery, snake_case
	Member string // of the input: the address
	Body   any    // of the type that is sent
}

// CallbackFault says what keeps an address from being a callback's, "" when
// nothing does: it is https on the usual port, has a host, and neither user nor
// fragment, and is all ASCII, as addresses are on the wire: anything else cannot
// be signed as the target. private also takes http and any port on a loopback
// address, for development. Whether a name leads to a public address shows when it
// is connected to.
func CallbackFault(raw string, private bool) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return "must be an absolute https address"
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "must be ASCII without spaces: percent-encode the path and query, and write the host in its xn-- form"
	case u.User != nil:
		return "must hold no user name or password"
	case u.Fragment != "":
		return "must hold no fragment"
	case private && (u.Scheme == "http" || u.Scheme == "https") && netx.IsLoopback(u.Hostname()):
		return ""
	case u.Scheme != "https":
		return "must begin with https://"
	case u.Port() != "" && u.Port() != "443":
		return "must use port 443"
	}
	return netx.HostFault(u.Hostname())
}

// A CallbackState says what became of a delivery.
type CallbackState string

const (
	CallbackWaiting CallbackState = "waiting" // to be tried, or tried again
	CallbackDone    CallbackState = "done"    // the receiver answered 2xx
	CallbackGone    CallbackState = "gone"    // the receiver answered 410: nothing more goes there
	CallbackRefused CallbackState = "refused" // the address is not public; nothing was sent
	CallbackFailed  CallbackState = "failed"  // given up after 24 hours
)

// A CallbackDelivery is one reply on its way to a callbackUrl.
type CallbackDelivery struct {
	ID        string        `json:"id" doc:"Id of the reply; the Webhook-Id of every try."`
	ThreadID  string        `json:"threadId"`
	URL       string        `json:"url" format:"uri" doc:"Chosen by the writer; data, never an address to trust."`
	State     CallbackState `json:"state" enum:"waiting,done,gone,refused,failed"`
	Attempts  int           `json:"attempts" minimum:"0"`
	Status    *int          `json:"status" doc:"HTTP status of the last answer; null when there was none."`
	LastError string        `json:"lastError" doc:"Why the last try failed; empty when it did not."`
	CreatedAt time.Time     `json:"createdAt"`
	NextAt    *time.Time    `json:"nextAt" doc:"When it is tried next; null when it is not."`
	Untrusted bool          `json:"untrusted_content" doc:"Always true."`
}
