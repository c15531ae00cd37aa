package client

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/protocol/pow"
)

// A Problem is a refusal by the node, or by something in front of it.
type Problem struct {
	Status   int
	Title    string
	Instance string         // the node's name for the request, for its operator
	Fresh    *pow.Challenge // a challenge that would settle it; nil for none
	Raw      []byte         // the body as sent
	Err      *protocol.Error
}

func (p *Problem) Error() string {
	s := strconv.Itoa(p.Status) + " " + p.Err.Error()
	if len(p.Err.Faults) == 1 && strings.Contains(p.Err.Detail, p.Err.Faults[0].Detail) {
		return s // the sentence is the fault
	}
	for _, f := range p.Err.Faults {
		s += "\n  " + f.Pointer + ": " + f.Detail
	}
	return s
}

// Unwrap makes the code reachable: protocol.CodeOf, errors.AsType.
func (p *Problem) Unwrap() error { return p.Err }

// readProblem reads an RFC 9457 document. An answer that is none becomes a
// problem made from its status.
func readProblem(resp *http.Response, body []byte) *Problem {
	p := &Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode), Raw: body, Err: &protocol.Error{Code: protocol.Internal}}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var doc struct {
		Title     string           `json:"title"`
		Detail    string           `json:"detail"`
		Code      protocol.Code    `json:"code"`
		Instance  string           `json:"instance"`
		Errors    []protocol.Fault `json:"errors"`
		Challenge *pow.Challenge   `json:"challenge"`
	}
	if media == "application/problem+json" && json.Unmarshal(body, &doc) == nil && doc.Code != "" {
		p.Title, p.Instance, p.Fresh = doc.Title, doc.Instance, doc.Challenge
		p.Err = &protocol.Error{Code: doc.Code, Detail: doc.Detail, Faults: doc.Errors}
		if doc.Challenge != nil {
			p.Err.Challenge = doc.Challenge
		}
	} else {
		p.Err.Detail = "the answer is no problem document; is this a stoa node? " + firstLine(body)
	}
	p.Err.Signature = resp.Header.Get("Signature-Error")
	p.Err.RetryAfter = netx.RetryAfter(resp.Header.Get("Retry-After"), time.Now(), 24*time.Hour)
	return p
}

func firstLine(body []byte) string {
	line, _, _ := strings.Cut(string(body[:min(len(body), 120)]), "\n")
	return strings.ToValidUTF8(line, "?")
}
