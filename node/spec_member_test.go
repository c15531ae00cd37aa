package node_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"stoa/node/nodetest"
)

// exactly says that an object has these members and no others.
func exactly(path, names string) string {
	list := strings.Fields(names)
	slices.Sort(list)
	raw, _ := json.Marshal(list) // strings always encode
	return strings.TrimPrefix(path+".{}="+string(raw), ".")
}

const (
	moment = "~^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,3})?Z$" // contract §1
	always = "$schema version handle name kind headline description identity capabilities needs tags languages regions interfaces contactPolicy " +
		"reputation updatedAt untrusted_content"
)

// memberRows are the members of what spec §2 describes: all that it names, under
// those names, and nothing that it does not.
func memberRows(s *nodetest.Spec) []specRow {
	at := func(path string) string { return s.Base + path }
	documents := "/.well-known/service-agents/" + s.KeyID
	ways := "page profile a2a agentCard publicContact publicMcp board "
	author := "name handle node actor erc8004 verified method keyid proof"
	proof := "level subject chain block blockHash owner checkedAt" // two of contract §9
	post := "id uri url kind title body tags inReplyTo root resolved resolvedBy author node replyCount createdAt untrusted_content"
	merchant := "handle name headline category city openNow opensAt closesAt hasIdentity reputation page profile untrusted_content"
	return []specRow{
		{row: "§2.1 a business", path: "/api/public/agents/chai", want: []string{exactly("", always), `headline=""`, `description=""`, "tags=[]",
			"languages=[]", "regions=[]", "capabilities=[]", "needs=[]", "reputation=null",
			`$schema="` + at("/schemas/agent-profile.v1.json") + `"`, "updatedAt" + moment, "untrusted_content=true", "!agent", "!returns", "!timezone"}},
		{row: "§2.1 a person", path: "/api/public/agents/vidya", want: []string{exactly("", always+" agent"), "reputation=null", "!returns"}},
		{row: "§2.2 agent", path: "/api/public/agents/vidya", want: []string{exactly("agent", "name by product acceptingMeetingRequests"), "agent.name~.",
			"agent.by~.", "agent.product~.", "agent.acceptingMeetingRequests~^(true|false)$"}},
		{row: "§2.3 an identity", path: "/api/public/agents/vidya",
			want: []string{exactly("identity", "erc8004 registration keyDirectory note"), fmt.Sprintf("identity.erc8004=%q", nodetest.VidyaID),
				"identity.erc8004~^eip155:[0-9]+:0x[0-9a-f]{40}:[0-9]+$",
				fmt.Sprintf("identity.registration=%q", at(documents+"/registration.json")), fmt.Sprintf("identity.keyDirectory=%q", at(documents+"/jwks.json")),
				"identity.note~Verify this agent's messages against the key registered on chain 31337"}},
		{row: "§2.3 no identity", path: "/api/public/agents/chai",
			want: []string{exactly("identity", "erc8004 registration keyDirectory note"), "identity.erc8004=null", "identity.registration=null",
				"identity.keyDirectory=null", "identity.note~No on-chain identity is set up yet"}},
		{row: "§2.3, §4.1 the registration", path: documents + "/registration.json", want: []string{"name", "registrations.0.agentId=7"}},
		{row: "§2.3, §4.1 the key directory", path: documents + "/jwks.json", want: []string{"keys.#=1", "keys.0.x", "!keys.0.d"}},
		{row: "§2.4 a person", path: "/api/public/agents/vidya", want: []string{exactly("interfaces", ways+"meetings meetingPage attentionBoard")}},
		{row: "§2.4 a business", path: "/api/public/agents/chai", want: []string{exactly("interfaces", ways+"catalog")}},
		{row: "§2.5 contact policy", path: "/api/public/agents/chai",
			want: []string{exactly("contactPolicy", "outsideAgentsWithIdentity anonymous kinds anonymousRequires responseTime"),
				"contactPolicy.anonymousRequires~GET /api/public/pow[?]purpose=contact"}},
		{row: "§2.8 a capability", path: "/api/public/agents/vidya", want: []string{exactly("capabilities.0", "id name description tags"), "capabilities.#=1"}},
		{row: "§2.10 a post", path: "/api/public/board/" + s.Post.ID,
			want: []string{exactly("post", post), exactly("post.author", author), exactly("post.author.proof", proof), `post.author.proof.level="session"`,
				"post.id~^post_[0-9a-z]{26}$", "post.createdAt" + moment,
				fmt.Sprintf("post.url=%q", at("/board/"+s.Post.ID)), "post.author.verified=true", `post.author.handle="asha"`, exactly("replies", "items next")}},
		{row: "§2.14, contract §6 a feed item", path: "/api/public/feed?limit=1",
			want: []string{exactly("items.0", "id type at actor subject summary node untrusted_content"), exactly("items.0.actor", author),
				exactly("items.0.subject", "kind id url title"), "items.0.at" + moment}},
		{row: "§2.15 a merchant in a list", path: "/api/public/merchants?q=bazaar",
			want: []string{exactly("items.0", merchant+" priceRange"), `items.0.category="Books"`, `items.0.city="Mumbai"`,
				"items.0.openNow~^(true|false)$", `items.0.priceRange.min={"currency":"INR","amount":"120.50"}`}},
		{row: "§2.15 hours that nobody wrote", path: "/api/public/merchants?q=chai",
			want: []string{exactly("items.0", merchant), "items.0.openNow=null", "items.0.opensAt=null", "items.0.closesAt=null"}},
		{row: "§2.15 a merchant's page", path: "/api/public/merchants/bazaar",
			want: []string{"items.#=2", `items.0.name="Ledger"`, `items.0.price={"currency":"INR","amount":"120.50"}`, "items.1.price=null", "items.0.id~^item_",
				`hours=[{"day":"monday","opens":"10:00","closes":"19:30"}]`, "exceptionHours=[]", `timezone="Asia/Kolkata"`, "identity.erc8004=null",
				"reputation=null", "updatedAt" + moment}},
		{row: "§2.15 a person in a list", path: "/api/public/people?q=vidya",
			want: []string{exactly("items.0", "handle name headline tags languages regions hasAttentionBoard hasIdentity page profile untrusted_content"),
				"items.0.hasAttentionBoard=false", "items.0.hasIdentity=true"}},
		{row: "§2.11 a thread", path: "/api/public/threads/" + s.Thread.ThreadID, as: "read",
			want: []string{"threadId~^thr_", `state="open"`, `messages.items.0.text="Do you deliver?"`, "!readToken"}},
		{row: "§4.1 the challenge", path: "/api/public/pow?purpose=contact", want: []string{exactly("", "parameters signature hint")}},
		{row: "§9 the schema", path: "/schemas/agent-profile.v1.json",
			want: []string{`title="service.agent-profile/v1"`, `required=["version","handle","capabilities","needs","interfaces","contactPolicy","name","kind"]`,
				"$defs.Capability.additionalProperties=false", "$defs.Need.additionalProperties=false", "properties.untrusted_content.enum=[true]"}},
	}
}
