package node

import (
	"encoding/json"
	"net/http"
	"strconv"

	"stoa/identity"
	"stoa/identity/attest"
	"stoa/node/door/httpapi"
	"stoa/node/hall"
	"stoa/protocol"
)

// postProof serves the proof document of a post to whom the post itself is shown.
func (n *Node) postProof(w http.ResponseWriter, r *http.Request) {
	id, network := r.PathValue("id"), n.front.network(r)
	args, err := json.Marshal(map[string]any{"id": id, "limit": 1})
	var body []byte
	if err == nil {
		_, err = n.Table.Invoke(r.Context(), hall.Request{
			Op: protocol.GetBoardPost.Name, Args: args, Door: "proof", Evidence: identity.Evidence{Network: network}, ID: w.Header().Get(httpapi.RequestIDHeader),
		})
	}
	if err == nil {
		body, err = n.prover.Post(r.Context(), network, id)
	}
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
	if err != nil {
		httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err)
		return
	}
	tag := hall.Tag(body)
	head.Set("Cache-Control", "public, max-age=60")
	head.Set("ETag", tag)
	if httpapi.Matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", attest.MediaType)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}
