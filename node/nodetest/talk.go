package nodetest

import (
	"fmt"

	"stoa/protocol"
)

// Agent puts a profile with a contact policy on the node and gives an owner's
// token for it.
func (h *House) Agent(handle, policy string) (token string) {
	h.T.Helper()
	h.PutProfile(fmt.Appendf(nil, `{"handle":%q,"name":"Agent %s","kind":"person","contactPolicy":%s}`,
		handle, handle, policy))
	token = h.TokenOf(handle, "test")
	return "Bearer " + token
}

// OpenPolicy is a contact policy that refuses nobody.
const OpenPolicy = `{"anonymous":true,"outsideAgentsWithIdentity":true}`

// Reply replies to a post as the holder of the token; "" pays a proof.
func (h *House) Reply(token, to, title string) (p protocol.Post) {
	h.T.Helper()
	headers := []string{"Authorization", token}
	if token == "" {
		headers = []string{"Proof-Of-Work", h.Proof("board")}
	}
	a := h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":%q,"body":"Body of it","inReplyTo":%q}`, title, to), headers...).Is(201)
	a.Into(&p)
	return p
}
