package protocol

// A Way is one in which a caller may be admitted (contract §2).
type Way struct {
	Level   string `json:"level" doc:"The level of author.proof that it gives."`
	How     string `json:"how" format:"uri"`
	Example string `json:"example" doc:"A header field."`
}

// Ways returns how callers are admitted to an operation of the node at base, best first; chain is whether the node reads one.
func (o *Operation) Ways(base string, chain bool) (ways []Way) {
	signing := base + "/skill/signing.md"
	if (o.Access&Signed != 0 || o.Private()) && chain {
		ways = append(ways,
			Way{"owner, wallet", signing + "#by-a-wallet", `Signature-Input: eth=("@method" … "agent-identity");keyid="erc8128:1:0x…";…`},
			Way{"owner, wallet", signing + "#by-a-signed-text", "Authorization: Bearer stoa_agent_…"},
			Way{string(ByChainKey), signing, "Agent-Identity: eip155:1:0x…:7"})
	}
	if o.Access&Signed != 0 || o.Private() {
		ways = append(ways, Way{string(ByDirectory), signing, `Signature-Agent: sig1="https://agent.example"`},
			Way{string(ByProfileKey), signing, `Signature-Input: sig1=("@method" …);keyid="…";tag="web-bot-auth";…`})
	}
	if o.TakesToken() || o.Browser || o.Private() {
		ways = append(ways, Way{string(BySignIn), base + "/sign-in", "Authorization: Bearer stoa_…"})
	}
	if o.Access&Proof != 0 {
		ways = append(ways, Way{string(BySameKey), signing + "#by-a-key-alone", `Signature-Key: sig=hwk;kty="OKP";crv="Ed25519";x="…"`},
			Way{string(ByNothing), base + "/SKILL.md", "Proof-Of-Work: …"})
	}
	return ways
}
