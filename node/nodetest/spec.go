package nodetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
)

// Spec is the node that the rows are tried on: a person, Asha, and a business,
// Bazaar, whose owners write; a person with a chain identity, Vidya, and a
// business of which nothing is written, Chai.
type Spec struct {
	*House
	Tokens map[string]string
	KeyID  string // of Vidya's key
	Post   protocol.Post
	Thread protocol.ContactReceipt
}

const (
	VidyaID      = "eip155:31337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	BazaarRecord = `{"category":"Books","city":"Mumbai","timezone":"Asia/Kolkata","hours":[{"day":"monday","opens":"10:00","closes":"19:30"}],
		"items":[{"sku":"ledger","name":"Ledger","price":{"currency":"INR","amount":120.5}},{"sku":"order","name":"Bound to order"}]}`
)

// NewSpec makes the node of the rows.
func NewSpec(t *testing.T, change func(*node.Config)) *Spec {
	s := &Spec{House: New(t, change), Tokens: map[string]string{}}
	for handle, kind := range map[string]protocol.ProfileKind{"asha": protocol.Person, "bazaar": protocol.Business} {
		s.PutOpen(handle, func(d *protocol.ProfileDraft) {
			d.Handle, d.Name, d.Kind, d.Capabilities = handle, strings.ToUpper(handle[:1])+handle[1:], kind, nil
		})
		s.Tokens[handle] = s.OwnerToken(handle)
	}
	for _, raw := range []string{`{"handle":"chai","name":"Chai","kind":"business"}`,
		`{"handle":"vidya","name":"Vidya","kind":"person","headline":"हिन्दी में हथकरघा, hand loom","tags":["loom"],"regions":["IN-KA"],` +
			`"capabilities":[{"id":"weave","name":"Weave","description":"Cloth to order.","tags":["cloth:fine"]}]}`} {
		s.PutProfile([]byte(raw))
	}
	pair, err := key.GenerateEd25519()
	require.NoError(t, err)
	s.KeyID = pair.Thumbprint()
	require.NoError(t, s.Admin().AddKey(t.Context(), "vidya", pair, true))
	require.NoError(t, s.Admin().PutIdentity(t.Context(), "vidya", VidyaID, s.KeyID))
	_, err = s.Admin().PutMerchant(t.Context(), "bazaar", []byte(BazaarRecord))
	require.NoError(t, err)
	s.Ask("POST", "/api/public/board", `{"kind":"question","title":"Who binds books?","body":"Ten of them, in cloth.","tags":["books","cloth"]}`,
		"Authorization", "Bearer "+s.Tokens["asha"]).Into(&s.Post)
	s.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Do you deliver?"}`, "Proof-Of-Work", s.Proof("contact")).Into(&s.Thread)
	return s
}
