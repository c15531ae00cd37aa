package node_test

import (
	"fmt"
	"strings"

	"stoa/node/nodetest"
)

const (
	person = `{"handle":"asha","name":"Asha","kind":"person","contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question",` +
		`"quote_request"]}}`
	business = `{"handle":"bazaar","name":"Bazaar","kind":"business"}`
	own      = "/api/owner/profile"
)

// profileRows are spec §2.1 to §2.7 as a reader sees them.
func profileRows(s *nodetest.Spec) []specRow {
	put := func(row, as, base, member string, value any, want ...string) specRow {
		return specRow{row: row, method: "PUT", path: own, as: as, body: with(base, member, value), want: want}
	}
	bad := func(row, as, base, member string, value any, fault string) specRow {
		return specRow{row: row, method: "PUT", path: own, as: as, body: with(base, member, value), fault: fault}
	}
	reads := "/api/public/agents/"
	iface := func(name, value string) string { return "interfaces." + name + `="` + s.Base + value + `"` }
	return []specRow{
		{row: "§2.1 version, handle, name, kind, untrusted_content", path: reads + "asha",
			want: []string{"version=1", `handle="asha"`, `name="Asha"`, `kind="person"`, "untrusted_content=true", "updatedAt", "$schema"}},
		{row: "§2.1 required lists", path: reads + "asha", want: []string{"capabilities", "needs", "interfaces", "contactPolicy"}},
		{row: "§2.1 empty when unset", path: reads + "bazaar", want: []string{`headline=""`, "reputation=null", "!agent"}},
		{row: "§2.2 agent", path: reads + "asha", want: []string{"agent.name", "agent.by", "agent.product", "agent.acceptingMeetingRequests"}},
		{row: "§2.3 identity without a chain", path: reads + "asha",
			want: []string{"identity.erc8004=null", "identity.registration=null", "identity.keyDirectory=null", `identity.note="No on-chain identity is set up yet."`}},
		{row: "§2.4 interfaces of all", path: reads + "asha", want: []string{iface("page", "/@asha"), iface("profile", "/api/public/agents/asha"),
			iface("a2a", "/a2a/asha"), iface("agentCard", "/a2a/asha/agent-card.json"),
			iface("publicContact", "/api/public/agents/asha/contact"), iface("publicMcp", "/mcp/public"), iface("board", "/api/public/board?author=asha")}},
		{row: "§2.4 interfaces of persons", path: reads + "asha", want: []string{"interfaces.meetings=null", "interfaces.meetingPage=null",
			"interfaces.attentionBoard=null", "!interfaces.catalog"}},
		{row: "§2.4 interfaces of businesses", path: reads + "bazaar",
			want: []string{iface("catalog", "/api/ucp/catalog/search"), "!interfaces.meetings", "!interfaces.meetingPage", "!interfaces.attentionBoard"}},
		{row: "§2.4 interfaces of a business that sells nothing", path: reads + "chai", want: []string{"interfaces.catalog=null"}},
		{row: "§2.5 contact policy", path: reads + "asha", want: []string{"contactPolicy.outsideAgentsWithIdentity=true", "contactPolicy.anonymous=true",
			`contactPolicy.kinds=["question","quote_request"]`, "contactPolicy.responseTime=null",
			`contactPolicy.anonymousRequires="A solved proof of work obtained from GET /api/public/pow?purpose=contact is required."`}},
		put("§2.4 null is not accepted", "bazaar", business, "contactPolicy", map[string]any{"outsideAgentsWithIdentity": false, "anonymous": false}),
		{row: "§2.4 null is not accepted", path: reads + "bazaar", want: []string{"interfaces.a2a=null", "interfaces.publicContact=null"}},
		bad("§2.5 kinds", "asha", person, "contactPolicy", map[string]any{"outsideAgentsWithIdentity": true, "anonymous": true,
			"kinds": []string{"rumour"}}, "/contactPolicy/kinds/0"),
		put("§2.5 every kind, and when to expect an answer", "bazaar", business, "contactPolicy",
			map[string]any{"outsideAgentsWithIdentity": true, "anonymous": true, "kinds": []string{"support", "quote_request", "question"}, "responseTime": "same day"}),
		{row: "§2.5 every kind, and when to expect an answer", path: reads + "bazaar",
			want: []string{`contactPolicy.kinds=["support","quote_request","question"]`, `contactPolicy.responseTime="same day"`}},
		bad("§2.5 anonymous", "asha", person, "contactPolicy", map[string]any{"outsideAgentsWithIdentity": true, "anonymous": "yes"}, "/contactPolicy/anonymous"),
		bad("§2.5 outsideAgentsWithIdentity", "asha", person, "contactPolicy", map[string]any{"outsideAgentsWithIdentity": 1, "anonymous": true},
			"/contactPolicy/outsideAgentsWithIdentity"),
		put("§2.1 version", "asha", person, "version", 1),
		bad("§2.1 version is 1", "asha", person, "version", 2, "/version"),
		bad("§2.1 version is an integer", "asha", person, "version", 1.5, "/version"),
		bad("§2.1 handle", "asha", person, "handle", "As ha", "/handle"),
		{row: "§2.1 handle is unique", method: "PUT", path: own, as: "asha", body: with(person, "handle", "bazaar"), status: 403},
		bad("§2.1 untrusted_content", "asha", person, "untrusted_content", "yes", "/untrusted_content"),
		bad("§2.1 kind", "asha", person, "kind", "robot", "/kind"),
		{row: "§2.1 handle is required", method: "PUT", path: own, as: "asha", body: `{"name":"A","kind":"person"}`, fault: "/handle"},
		{row: "§2.1 name is required", method: "PUT", path: own, as: "asha", body: `{"handle":"asha","kind":"person"}`, fault: "/name"},
		put("§2.1 languages", "asha", person, "languages", []string{"en", "hi", "pa-Guru-IN", "i-klingon"}),
		bad("§2.1 languages are BCP 47", "asha", person, "languages", []string{"xx-nonsense-1"}, "/languages/0"),
		put("§2.1 regions", "asha", person, "regions", []string{"IN", "IN-KA"}),
		bad("§2.1 languages have scripts of ISO 15924", "asha", person, "languages", []string{"en", "hi-Dave"}, "/languages/1"),
		bad("§2.1 regions are ISO 3166", "asha", person, "regions", []string{"XQ"}, "/regions/0"),
		bad("§2.1 regions are ISO 3166-2", "asha", person, "regions", []string{"IN", "IN-ZZ"}, "/regions/1"),
		bad("§2.1 no other names of countries", "asha", person, "regions", []string{"UK"}, "/regions/0"),
		put("§2.1 timezone", "asha", person, "timezone", "Asia/Kolkata"),
		bad("§2.1 timezone is IANA's", "asha", person, "timezone", "Asia/Atlantis", "/timezone"),
		put("§2.2 agent", "asha", person, "agent", map[string]any{"name": "Mitra", "by": "Stoa", "product": "Stoa One", "acceptingMeetingRequests": true}),
		{row: "§2.2 agent", path: reads + "asha", want: []string{`agent={"name":"Mitra","by":"Stoa","product":"Stoa One","acceptingMeetingRequests":true}`}},
		{row: "§2.2, §2.4, §2.8 it takes meeting requests", path: reads + "asha", want: []string{
			`capabilities.0.id="schedule-meeting"`, `capabilities.0.pricing.model="free"`, `capabilities.0.tags=["scheduling","calendar"]`, "capabilities.0",
			"!capabilities.1", `interfaces.meetings~/api/public/agents/asha/meetings$`, `interfaces.meetingPage~/@asha/meet$`}},
		{row: "§4.1 page of meetings", path: "/@asha/meet"},
		{row: "§2.13 a meeting-info lookup", path: reads + "asha/meetings", want: []string{"accepting=true", "durations=[15,30]", `timezone="Asia/Kolkata"`,
			`usualDays=["monday","tuesday","wednesday","thursday","friday"]`, "slots=null"}},
		put("§2.2 it takes none", "asha", person, "agent", map[string]any{"name": "Mitra", "by": "Stoa", "product": "Stoa One", "acceptingMeetingRequests": false}),
		{row: "§2.13 of a person who takes none", path: reads + "asha/meetings", want: []string{"accepting=false", "slots=null"}},
		{row: "§2.13 of a business", path: reads + "bazaar/meetings", status: 404},
		bad("§2.2 acceptingMeetingRequests", "asha", person, "agent",
			map[string]any{"name": "a", "by": "b", "product": "c", "acceptingMeetingRequests": "no"}, "/agent/acceptingMeetingRequests"),
		bad("§8 agent.name of 80 characters", "asha", person, "agent",
			map[string]any{"name": long(81), "by": "b", "product": "c", "acceptingMeetingRequests": false}, "/agent/name"),
		put("§2.2 agent, the node's", "asha", person, "headline", ""),
		bad("§2.2 agent is for persons", "bazaar", business, "agent",
			map[string]any{"name": "a", "by": "b", "product": "c", "acceptingMeetingRequests": true}, "/agent"),
		put("§2.7 returns", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "windowDays": 30, "covers": "Faults",
			"goodsMustComeBack": true, "supportAgentApprovesUpTo": "₹500", "instructions": "Write first.", "note": "Thanks."}),
		{row: "§2.7 returns", path: reads + "bazaar", want: []string{"returns.acceptsReturns=true", "returns.windowDays=30", `returns.covers="Faults"`,
			"returns.goodsMustComeBack=true", `returns.supportAgentApprovesUpTo="₹500"`, `returns.instructions="Write first."`, `returns.note="Thanks."`}},
		put("§2.7 returns, the least, and null where it may be", "bazaar", business, "returns",
			map[string]any{"acceptsReturns": false, "supportAgentApprovesUpTo": nil, "instructions": nil}),
		{row: "§2.7 returns, the least", path: reads + "bazaar", want: []string{exactly("returns", "acceptsReturns"), "returns.acceptsReturns=false"}},
		bad("§2.7 acceptsReturns", "bazaar", business, "returns", map[string]any{"acceptsReturns": "yes"}, "/returns/acceptsReturns"),
		bad("§2.7 windowDays", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "windowDays": 1.5}, "/returns/windowDays"),
		bad("§2.7 covers", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "covers": 1}, "/returns/covers"),
		bad("§2.7 goodsMustComeBack", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "goodsMustComeBack": "no"}, "/returns/goodsMustComeBack"),
		bad("§2.7 supportAgentApprovesUpTo", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "supportAgentApprovesUpTo": 500},
			"/returns/supportAgentApprovesUpTo"),
		bad("§2.7 instructions", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "instructions": []string{}}, "/returns/instructions"),
		bad("§2.7 note", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "note": true}, "/returns/note"),
		bad("§2.7 nothing else", "bazaar", business, "returns", map[string]any{"acceptsReturns": true, "colour": "red"}, "/returns/colour"),
		bad("§2.7 acceptsReturns is required", "bazaar", business, "returns", map[string]any{"windowDays": 3}, "/returns/acceptsReturns"),
		bad("§2.7 returns are for businesses", "asha", person, "returns", map[string]any{"acceptsReturns": true}, "/returns"),
		{row: "§2.8 a person whose rooms are not open", path: reads + "asha", want: []string{"capabilities=[]"}},
		{row: "§2.8 the business has none", path: reads + "bazaar", want: []string{"capabilities=[]"}},
	}
}

// profileLimits are the limits of spec §2.1 and §8 on the profile as a whole.
func profileLimits(*nodetest.Spec) (rows []specRow) {
	put := func(row string) specRow { return specRow{row: row, method: "PUT", path: own, as: "asha"} }
	for _, l := range []struct {
		member string
		edge   int
		fault  string
		value  func(n int) any
	}{
		{"headline", 140, "/headline", func(n int) any { return long(n) }},
		{"description", 1000, "/description", func(n int) any { return long(n) }},
		{"tags", 12, "/tags", func(n int) any { return several(n, func(i int) any { return fmt.Sprint("tag", i) }) }},
		{"languages", 10, "/languages", func(n int) any { return []string{"en", "hi", "ta", "te", "kn", "ml", "mr", "gu", "bn", "pa", "ur"}[:n] }},
		{"regions", 20, "/regions", func(n int) any {
			return strings.Split("IN IN-KA IN-MH IN-TN IN-KL IN-DL IN-GJ IN-RJ IN-WB IN-UP IN-PB IN-HR IN-BR IN-GA IN-AS IN-JK FR DE GB US CA", " ")[:n]
		}},
		{"capabilities", 20, "/capabilities", func(n int) any {
			return several(n, func(i int) any { return map[string]any{"id": fmt.Sprint("c", i), "name": "n", "description": "d"} })
		}},
		{"needs", 20, "/needs", func(n int) any {
			return several(n, func(i int) any { return map[string]any{"id": fmt.Sprint("n", i), "description": "d"} })
		}},
	} {
		rows = append(rows, limit(put("§8 "+l.member), l.edge, l.fault, func(n int) string { return with(person, l.member, l.value(n)) })...)
	}
	rows = append(rows, limit(put("§8 tag of 1 to 32 characters"), 32, "/tags/0",
		func(n int) string { return with(person, "tags", []string{strings.Repeat("a", n)}) })...)
	for _, tag := range []string{"", "-a", "A", "a b", "é"} {
		row := put("§8 pattern of tags")
		row.body, row.fault = with(person, "tags", []string{tag}), "/tags/0"
		rows = append(rows, row)
	}
	return rows
}

// partLimits are the limits of spec §2.8, §2.9 and §8 on capabilities and needs.
func partLimits(*nodetest.Spec) (rows []specRow) {
	for _, part := range []struct{ list, base string }{
		{"capabilities", `{"id":"bind","name":"Bind","description":"Books."}`}, {"needs", `{"id":"cloth","description":"Cloth."}`},
	} {
		put := func(row string) specRow { return specRow{row: row, method: "PUT", path: own, as: "asha"} }
		body := func(member string, value any) string {
			return strings.Replace(with(person, part.list, []any{"PART"}), `"PART"`, with(part.base, member, value), 1)
		}
		at := "/" + part.list + "/0/"
		text, required := map[string]int{"description": 400}, []string{"id", "description"}
		if part.list == "capabilities" {
			required = append(required, "name")
			text["name"], text["input"], text["output"] = 60, 200, 200
		}
		for member, edge := range text {
			rows = append(rows, limit(put("§8 "+part.list+" "+member), edge, at+member, func(n int) string { return body(member, long(n)) })...)
		}
		rows = append(rows, limit(put("§8 tags of "+part.list), 8, at+"tags", func(n int) string {
			return body("tags", several(n, func(i int) any { return fmt.Sprint("t", i) }))
		})...)
		rows = append(rows, limit(put("§8 id of "+part.list), 40, at+"id", func(n int) string { return body("id", "a"+strings.Repeat("b", n-1)) })...)
		for id, good := range map[string]bool{"ab": true, "a": false, "1a": false, "Ab": false, "a_b": false, "a-1": true} {
			row := put("§2.8, §2.9 pattern of ids: " + id)
			if row.body = body("id", id); !good {
				row.fault = at + "id"
			}
			rows = append(rows, row)
		}
		rows = append(rows, limit(put("§8 tag of "+part.list), 32, at+"tags/0", func(n int) string { return body("tags", []string{strings.Repeat("a", n)}) })...)
		for tag, good := range map[string]bool{"a": true, "9_.:-z": true, "": false, "_a": false, "A": false, "a b": false} {
			row := put("§2.8, §2.9 pattern of tags: " + tag)
			if row.body = body("tags", []string{tag}); !good {
				row.fault = at + "tags/0"
			}
			rows = append(rows, row)
		}
		for _, member := range required {
			row := put("§2.8, §2.9 required: " + member)
			row.body, row.fault = body(member, nil), at+member
			rows = append(rows, row)
			row.body, row.fault = strings.Replace(with(person, part.list, []any{"PART"}), `"PART"`, without(part.base, member), 1), at+member
			rows = append(rows, row)
		}
		row := put("§2.8, §2.9 no additional properties")
		row.body, row.fault = body("colour", "red"), at+"colour"
		rows = append(rows, row)
		if part.list == "needs" {
			continue
		}
		rows = append(rows, limit(put("§8 pricing.note"), 120, at+"pricing/note", func(n int) string {
			return body("pricing", map[string]any{"model": "quote", "note": long(n)})
		})...)
		for price, fault := range map[string]string{
			`{"model":"free"}`: "", `{"model":"fixed","currency":"INR","amount":0}`: "", `{"model":"per_use","currency":"INR"}`: "", `{"model":"quote"}`: "",
			`{}`: "pricing/model", `{"model":"barter"}`: "pricing/model", `{"model":"fixed","currency":"inr","amount":1}`: "pricing/currency",
			`{"model":"fixed","currency":"INR","amount":-1}`:   "pricing/amount",
			`{"model":"fixed","currency":"INR","amount":49.5}`: "", `{"model":"fixed","currency":"INR","amount":"49.50"}`: "pricing/amount",
			`{"model":"fixed","currency":"IN"}`: "pricing/currency", `{"model":"fixed","currency":"INRR"}`: "pricing/currency",
			`{"model":"fixed","currency":"XXY"}`: "pricing/currency", `{"model":"fixed","amount":3}`: "pricing/currency",
			`{"model":"free","colour":"red"}`: "pricing/colour",
		} {
			row := put("§2.8 pricing " + price)
			row.body = strings.Replace(body("pricing", "PRICE"), `"PRICE"`, price, 1)
			if fault != "" {
				row.fault = at + fault
			}
			rows = append(rows, row)
		}
		for endpoint, good := range map[string]bool{
			"https://a.example/x": true, "http://a.example/x": false, "ftp://a.example": false, "a.example": false, "https://": false, "https://a b.example/": false,
			"https://a.example:8443": true, "https://u:p@a.example": false,
		} {
			row := put("§2.8 endpoint " + endpoint)
			if row.body = body("endpoint", endpoint); !good {
				row.fault = at + "endpoint"
			}
			rows = append(rows, row)
		}
	}
	return rows
}
