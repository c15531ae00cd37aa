package a2a

// Callers says whom the door serves (spec §2.4, §5.4). The zero value is ChainCallers.
type Callers string

const (
	ChainCallers  Callers = "identity" // agents with a chain identity
	SignedCallers Callers = "signed"   // also other keys: of profiles of the node, of key directories, of wallets, and those that a request gives itself
	AnyCallers    Callers = "any"      // also API tokens, and guests that solve a challenge
)

// Names of the security schemes of cards.
const (
	schemeSignature = "httpsig"
	schemeSignIn    = "signInWithX"
	schemeToken     = "bearer"
	schemeProof     = "proofOfWork"
)

// schemes are what a card declares: exactly what the door takes, so that official clients send it by themselves. Each of the
// requirements admits a caller.
func (h Host) schemes() (map[string]SecurityScheme, []SecurityRequirement) {
	all := map[string]SecurityScheme{}
	var needs []SecurityRequirement
	need := func(names ...string) {
		r := SecurityRequirement{Schemes: map[string]Scopes{}}
		for _, name := range names {
			r.Schemes[name] = Scopes{[]string{"agent"}}
		}
		needs = append(needs, r)
	}
	header := func(name, field, text string) {
		all[name] = SecurityScheme{APIKey: &APIKeyScheme{Location: "header", Name: field, Description: text}}
	}
	header(schemeSignature, "Signature", "RFC 9421 HTTP message signature, tag web-bot-auth; see extension "+ExtSignedRequests)
	need(schemeSignature)
	token := ""
	if len(h.Chains) > 0 {
		token = "from " + h.Base + "/api/public/sign-in by the wallet of a chain identity"
		header(schemeSignIn, "Sign-In-With-X", "the text of "+h.Base+"/api/public/sign-in, signed by the wallet of a chain identity")
		need(schemeSignIn)
	}
	switch h.Callers {
	case SignedCallers:
		need(schemeSignature, schemeProof)
		token = or(token, "the read token of a task that was begun with a proof of work")
	case AnyCallers:
		need(schemeProof)
		token = or(token, "an API token of the node; or the read token of a task that was begun with a proof of work")
	}
	if h.Callers == SignedCallers || h.Callers == AnyCallers {
		header(schemeProof, "Proof-Of-Work", "a solved challenge of "+h.Base+"/api/public/pow?purpose=contact, or of a refusal; see extension "+ExtProof)
	}
	if token != "" {
		all[schemeToken] = SecurityScheme{HTTP: &HTTPScheme{Scheme: "Bearer", Description: token}}
		need(schemeToken)
	}
	return all, needs
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; or " + b
}

// proofExtension says what a proof of work is for, in a card of a door that takes it.
func (h Host) proofExtension() []Extension {
	if h.Callers != SignedCallers && h.Callers != AnyCallers {
		return nil
	}
	who := "A guest"
	if h.Callers == SignedCallers {
		who = "A key that nobody vouches for"
	}
	return []Extension{{ExtProof, who + ` sends a solved challenge with what writes (contact, skills tagged write), ` +
		`also as metadata["` + ExtProof + `"] of the message. ` +
		`A new task has a read token in metadata["` + ExtContact + `/readToken"]; send it as bearer token with later requests about the task.`,
		map[string]any{"challenge": h.Base + "/api/public/pow?purpose=contact", "header": "Proof-Of-Work"}}}
}
