package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// OAuth returns the endpoints that programs call without a browser, by their paths: in the words and forms of their standards (RFC 6749 §3.2, RFC 7591
// §3.1, RFC 7009 §2.1), with an operation behind each.
func (a *API) OAuth() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		protocol.OAuthTokenPath:    a.oauth(protocol.ExchangeCode.Operation, http.StatusOK, formMembers),
		protocol.OAuthRevokePath:   a.oauth(protocol.EndClient.Operation, http.StatusOK, formMembers),
		protocol.OAuthRegisterPath: a.oauth(protocol.RegisterClient.Operation, http.StatusCreated, jsonMembers),
	}
}

// oauth serves an operation whose input is what read makes of the body, without members that the operation does not know.
func (a *API) oauth(op *protocol.Operation, status int, read func(r *http.Request, body []byte) (map[string]any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		network, head := a.Network(r), w.Header()
		head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
		head.Set("Cache-Control", "no-store")
		body, err := hall.ReadBody(w, r, MaxBody)
		var members map[string]any
		if err == nil {
			members, err = read(r, body)
		}
		if err != nil {
			a.oauthError(w, op, err)
			return
		}
		for name := range members {
			if !a.Table.Schemas.Names(op.In, name) {
				delete(members, name)
			}
		}
		args, _ := json.Marshal(members) // cannot fail: it was decoded
		res, err := a.Table.Invoke(r.Context(), hall.Request{Op: op.Name, Args: args, Door: "http", Evidence: identity.Evidence{Network: network},
			ID: head.Get(RequestIDHeader)})
		a.Table.Limits.Fields(head, network, false)
		if err != nil {
			a.oauthError(w, op, err)
			return
		}
		if op == protocol.EndClient.Operation {
			w.WriteHeader(status)
			return
		}
		head.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write(res.JSON)
	}
}

func formMembers(r *http.Request, body []byte) (map[string]any, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the members as Content-Type: application/x-www-form-urlencoded")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the form cannot be read")
	}
	members := map[string]any{}
	for name, values := range form {
		if len(values) > 1 { // RFC 6749 §3.2
			return nil, protocol.Errorf(protocol.InvalidRequest, "the member %s is there twice", protocol.Clip(name, 50))
		}
		if values[0] != "" {
			members[name] = values[0]
		}
	}
	return members, nil
}

func jsonMembers(_ *http.Request, body []byte) (members map[string]any, err error) {
	if json.Unmarshal(body, &members) != nil || members == nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "send a JSON object")
	}
	return members, nil
}

// oauthErrors are the standards' names of errors (RFC 6749 §5.2, RFC 7591 §3.2.2, RFC 8707 §2).
var oauthErrors = map[protocol.Code]string{
	protocol.Gone: "invalid_grant", protocol.NotFound: "invalid_client", protocol.Conflict: "invalid_target",
	protocol.RateLimited: "temporarily_unavailable", protocol.Overloaded: "temporarily_unavailable", protocol.Internal: "server_error",
}

func (a *API) oauthError(w http.ResponseWriter, op *protocol.Operation, err error) {
	e := protocol.AsError(err)
	name, status := oauthErrors[e.Code], http.StatusBadRequest
	switch {
	case name == "" && op == protocol.RegisterClient.Operation:
		name = "invalid_client_metadata"
	case name == "":
		name = "invalid_request"
	case e.Code == protocol.NotFound:
		status = http.StatusUnauthorized
	case e.Code.Temporary():
		status = e.Code.Status()
		w.Header().Set("Retry-After", strconv.Itoa(netx.Seconds(e.RetryAfter)))
	}
	if len(e.Faults) > 0 && e.Faults[0].Pointer == "/grant_type" {
		name = "unsupported_grant_type"
	}
	if len(e.Faults) > 0 && op == protocol.RegisterClient.Operation && len(e.Faults[0].Pointer) > 14 && e.Faults[0].Pointer[:14] == "/redirect_uris" {
		name = "invalid_redirect_uri"
	}
	body, _ := json.Marshal(map[string]string{"error": name, "error_description": e.Detail}) // cannot fail: two texts
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}
