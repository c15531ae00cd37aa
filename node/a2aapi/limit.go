package a2aapi

import (
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/protocol/a2a"
)

var reading, writing = &protocol.Operation{ReadOnly: true}, &protocol.Operation{}

// counted is what a method counts as, for the limits.
func counted(method string) *protocol.Operation {
	if method == a2a.SendMessage {
		return writing
	}
	return reading
}

// quota writes the RateLimit fields (draft-ietf-httpapi-ratelimit-headers).
func (a *API) quota(head http.Header, network string, op *protocol.Operation) {
	limit, left, reset := a.c.Table.Limits.Quota(network, op.ReadOnly)
	head.Set("RateLimit-Policy", `"network";q=`+strconv.Itoa(limit))
	head.Set("RateLimit", `"network";r=`+strconv.Itoa(max(left, 0))+`;t=`+strconv.Itoa(int((reset+time.Second-1)/time.Second)))
}
