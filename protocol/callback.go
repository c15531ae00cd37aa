package protocol

import (
	"net/url"
	"strings"
	"time"

	"stoa/protocol/netx"
)

// CallbackFor is how long the delivery of a callback is retried (contract §4).
const CallbackFor = 24 * time.Hour

// WebhookID is the header with the id of a delivery, the same for every attempt.
const WebhookID = "Webhook-Id"

// A Callback is the document that is sent to a thread's callbackUrl for each reply (contract §4).
type Callback struct {
	Type      string    `json:"type" enum:"thread.reply"`
	ID        string    `json:"id" pattern:"^msg_" doc:"Id of the reply, and of the delivery: the value of Webhook-Id."`
	ThreadID  string    `json:"threadId"`
	Handle    string    `json:"handle" doc:"The agent that answered."`
	Message   Message   `json:"message"`
	CreatedAt time.Time `json:"createdAt"`
}

// A Delivery is what the node later POSTs to an address in the input of an operation.
type Delivery struct {
	Name   string // of the delivery, in snake_case
	Member string // member of the input that holds the address
	Body   any    // a value of the type that is sent
}

// CallbackFault returns why an address cannot be a callback's, "" if it can. It must be https on
// port 443, with a host, without user and fragment, and in ASCII as it is on the wire: nothing
// else can be signed as the target. With private, http and any port are allowed on loopback, for
// development. Whether the host name has a public address is checked when it is dialled.
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

// callback is the rule of every node; a room knows whether its own is stricter.
func callback(raw string) Fault {
	if why := CallbackFault(raw, true); why != "" {
		return Fault{Code: "callback-address", Detail: why}
	}
	return Fault{}
}

// A CallbackState is the state of a delivery.
type CallbackState string

const (
	CallbackWaiting CallbackState = "waiting" // to be sent, or retried
	CallbackDone    CallbackState = "done"    // the receiver answered 2xx
	CallbackGone    CallbackState = "gone"    // the receiver answered 410: nothing more is sent there
	CallbackRefused CallbackState = "refused" // the address is not public; nothing was sent
	CallbackFailed  CallbackState = "failed"  // given up after 24 hours
)

// A CallbackDelivery is the delivery of one reply to a callbackUrl.
type CallbackDelivery struct {
	ID        string        `json:"id" doc:"Id of the reply; the Webhook-Id of every attempt."`
	ThreadID  string        `json:"threadId"`
	URL       string        `json:"url" format:"uri" doc:"Chosen by the writer; data, never an address to trust."`
	State     CallbackState `json:"state" enum:"waiting,done,gone,refused,failed"`
	Attempts  int           `json:"attempts" minimum:"0"`
	Status    *int          `json:"status" doc:"HTTP status of the last answer; null when there was none."`
	LastError string        `json:"lastError" doc:"Why the last attempt failed; empty if it did not."`
	CreatedAt time.Time     `json:"createdAt"`
	NextAt    *time.Time    `json:"nextAt" doc:"When the next attempt is due; null for none."`
	Untrusted bool          `json:"untrusted_content" doc:"Always true."`
}
