package node_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

const offer = `{"kind":"offer","title":"Looms","body":"Two."}`

// boardRows are spec §2.10 and its limits of §8.
func boardRows(s *nodetest.Spec) (rows []specRow) {
	post := func(row, body string) specRow {
		return specRow{row: row, method: "POST", path: "/api/public/board", as: "asha", body: body, status: 201}
	}
	for i, kind := range []string{"requirement", "ability", "challenge", "resolution", "offer", "question", "announcement"} {
		row := post("§2.10 kind "+kind, fmt.Sprintf(`{"kind":%q,"title":"Kind %d","body":"Body %d"}`, kind, i, i))
		row.want = []string{fmt.Sprintf("kind=%q", kind), "id", "untrusted_content=true"}
		rows = append(rows, row)
	}
	for body, fault := range map[string]string{
		`{"kind":"rumour","title":"t","body":"b"}`: "/kind", `{"title":"t","body":"b"}`: "/kind", `{"kind":"offer","body":"b"}`: "/title",
		`{"kind":"offer","title":"t"}`:           "/body",
		`{"kind":"offer","title":"","body":"b"}`: "/title", with(offer, "inReplyTo", "p"): "/inReplyTo", with(offer, "tags", []string{"a b"}): "/tags/0",
		with(offer, "mood", "good"): "/mood",
	} {
		row := post("§2.10 "+fault, body)
		row.fault = fault
		rows = append(rows, row)
	}
	rows = append(rows, limit(post("§8 board post title", ""), 120, "/title", func(n int) string { return with(offer, "title", long(n)) })...)
	rows = append(rows, limit(post("§8 board post body", ""), 4000, "/body", func(n int) string { return with(offer, "body", long(n)) })...)
	reply := post("§2.10 inReplyTo", with(with(offer, "inReplyTo", s.Post.ID), "title", "I do"))
	reply.want = []string{fmt.Sprintf("inReplyTo=%q", s.Post.ID)}
	named := specRow{row: "§2.10, §5 name is shown as unverified", method: "POST", path: "/api/public/board", as: "pow",
		body: with(with(offer, "name", "Meera"), "title", "By hand"), status: 201,
		want: []string{`author.name="Meera"`, "author.verified=false", `author.method="pow"`}}
	read := func(row, query string, want ...string) specRow {
		return specRow{row: row, path: "/api/public/board" + query, want: want}
	}
	nameless := specRow{row: "§2.10, §5 without a name", method: "POST", path: "/api/public/board", as: "pow", body: with(offer, "title", "By nobody"),
		status: 201,
		want:   []string{"author.name~.", "author.handle=null", "author.erc8004=null", "author.verified=false"}}
	orphan := post("§2.10 inReplyTo of nothing", with(offer, "inReplyTo", "post_01k9h2v4tqe7dsq1h0y5m8x3zr"))
	orphan.fault = "/inReplyTo"
	for _, kind := range protocol.PostKinds {
		rows = append(rows, specRow{row: "§2.10 filter kind " + string(kind), path: "/api/public/board?limit=100&kind=" + string(kind),
			want: []string{fmt.Sprintf("items.0.kind=%q", kind)}})
	}
	return append(rows, reply, named, nameless, orphan,
		specRow{row: "§2.10 a post and its replies", path: "/api/public/board/" + s.Post.ID,
			want: []string{fmt.Sprintf("post.id=%q", s.Post.ID), "replies.items.#=1", `replies.items.0.title="I do"`}},
		read("§2.10 filter kind", "?kind=challenge", "items.#=1", `items.0.kind="challenge"`),
		read("§2.10 filter tag", "?tag=cloth", "items.#=1", fmt.Sprintf("items.0.id=%q", s.Post.ID)),
		read("§2.10 filter q", "?q=binds", "items.#=1"),
		read("§2.10 filter q, all words, in title and body", "?q=cloth+WHO", "items.#=1"),
		read("§2.10 filter q, not all words, said as such", "?q=cloth+zebra", "items.#=1", "partly=true", `without=["zebra"]`),
		read("§2.10 filter tag, nothing", "?tag=silk", "items=[]", "next=null"),
		read("§2.10 filter author, who wrote", "?author=asha&q=binds", "items.#=1", `items.0.author.handle="asha"`),
		read("§2.10 filter verifiedOnly, yes", "?verifiedOnly=true&q=binds", "items.#=1", "items.0.author.verified=true"),
		read("§2.10 newest first", "?limit=2", `items.0.title="By nobody"`, `items.1.title="By hand"`),
		read("§2.10 a resolution by another", "?resolved=true", "items=[]"),
		specRow{row: "§2.10 tag of a filter", path: "/api/public/board?tag=A+b", fault: "/tag"},
		specRow{row: "§2.10 author of a filter", path: "/api/public/board?author=as+ha", fault: "/author"},
		specRow{row: "§2.10 verifiedOnly of a filter", path: "/api/public/board?verifiedOnly=perhaps", fault: "/verifiedOnly"},
		read("§2.10 filter q, nothing", "?q=zebra", "items=[]", "next=null"),
		read("§2.10 filter author", "?author=bazaar", "items=[]"),
		read("§2.10 filter verifiedOnly", "?verifiedOnly=true&q=hand", "items=[]"),
		read("§2.10 filter verifiedOnly, not", "?verifiedOnly=false&q=hand", "items.#=1"),
		read("§2.10 filters together", "?kind=question&tag=books&q=binds&author=asha&verifiedOnly=true", "items.#=1"),
		specRow{row: "§2.10 kind of a filter", path: "/api/public/board?kind=rumour", fault: "/kind"},
	)
}

// threadRows are spec §2.11, the limits of a message, and §4.1's contact.
func threadRows(s *nodetest.Spec) (rows []specRow) {
	contact := func(row, as, body string) specRow {
		return specRow{row: row, method: "POST", path: "/api/public/agents/asha/contact", as: as, body: body, status: 201}
	}
	begun := contact("§2.11 a thread id and a read token come back", "pow",
		`{"message":"Hello","kind":"question","name":"Meera","callbackUrl":"https://a.example/hook"}`)
	begun.want = []string{"threadId", "readToken", `state="open"`}
	rows = append(rows, begun)
	rows = append(rows, limit(contact("§8 contact message", "pow", ""), 2000, "/message", func(n int) string { return with(`{}`, "message", long(n)) })...)
	for body, fault := range map[string]string{
		`{}`: "/message", `{"message":""}`: "/message", `{"message":"m","kind":"rumour"}`: "/kind",
		`{"message":"m","callbackUrl":"http://a.example/"}`: "/callbackUrl", `{"message":"m","mood":"x"}`: "/mood",
	} {
		row := contact("§4.2 contact_agent "+fault, "pow", body)
		row.fault = fault
		rows = append(rows, row)
	}
	read := "/api/public/threads/" + s.Thread.ThreadID
	return append(rows,
		specRow{row: "§5.2 writing takes a proof of work", method: "POST", path: "/api/public/agents/asha/contact", body: `{"message":"m"}`, status: 401,
			want: []string{`code="pow-required"`, "challenge"}},
		specRow{row: "§2.5, §5.5 a kind that is not taken", method: "POST", path: "/api/public/agents/asha/contact", as: "pow",
			body: `{"message":"m","kind":"support"}`, status: 403, want: []string{`code="contact-refused"`}},
		specRow{row: "§2.11 read with the token", path: read, as: "read", want: []string{`messages.items.0.text="Do you deliver?"`, "untrusted_content=true"}},
		specRow{row: "§2.11 not without", path: read, status: 404},
		specRow{row: "§4.2 check_conversation threadId", path: "/api/public/threads/x", fault: "/threadId"},
	)
}

// stateRows are spec §3 as far as its rooms are there: five distinct reports hide
// a post; and the states of threads of contract §5.
func stateRows(s *nodetest.Spec) []specRow {
	var post protocol.Post
	s.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Cheap watches","body":"Buy now."}`, "Proof-Of-Work", s.Proof("board")).Into(&post)
	at := "/api/public/board/" + post.ID
	five := s.Agents(5)
	for _, a := range append(five[:4:4], five...) {
		require.Equal(s.T, 200, s.Ask("GET", at, "").Code, "spec §3: visible before the fifth distinct report")
		require.Equal(s.T, 202, sendAs(a, s.House, "POST", at+"/report", `{}`))
	}
	var mine protocol.Post
	s.Ask("POST", "/api/public/board", `{"kind":"offer","title":"A pot of ink","body":"Black."}`, "Authorization", "Bearer "+s.Tokens["asha"]).Into(&mine)
	taken := "/api/public/board/" + mine.ID
	read := "/api/public/threads/" + s.Thread.ThreadID
	owner := "/api/owner/threads/" + s.Thread.ThreadID
	return []specRow{
		{row: "§3, §8 five distinct reports hide", path: at, status: 410, want: []string{`code="gone"`}},
		{row: "§3 and take it from the board", path: "/api/public/board?q=watches", want: []string{"items=[]"}},
		{row: "§3 and from its page", path: "/board/" + post.ID, status: 410},
		{row: "§3 hidden takes no more reports", method: "POST", path: at + "/report", as: "pow", body: `{}`, status: 410},
		{row: "contract §5 deleted, by nobody", method: "DELETE", path: taken, status: 401},
		{row: "contract §5 deleted, not by another", method: "DELETE", path: taken, as: "bazaar", status: 403},
		{row: "contract §5 visible, deleted", method: "DELETE", path: taken, as: "asha", status: 204},
		{row: "contract §5 deleted", path: taken, status: 410, want: []string{`code="gone"`}},
		{row: "contract §5 deleted is final", method: "DELETE", path: taken, as: "asha", status: 410},
		{row: "contract §5 deleted leaves the board", path: "/api/public/board?q=ink", want: []string{"items=[]"}},
		{row: "contract §5 open", path: read, as: "read", want: []string{`state="open"`}},
		{row: "contract §5 open, answered", method: "POST", path: owner + "/messages", as: "asha", body: `{"message":"Yes."}`, status: 201,
			want: []string{`state="answered"`}},
		{row: "contract §5 answered, open", method: "POST", path: read + "/messages",
			body: with(`{"message":"And to Ajmer?"}`, "readToken", s.Thread.ReadToken), as: "pow", status: 201, want: []string{`state="open"`}},
		{row: "contract §5 closed", method: "POST", path: owner + "/close", as: "asha", body: `{}`, want: []string{`state="closed"`}},
		{row: "contract §5 closed takes nothing more", method: "POST", path: read + "/messages",
			body: with(`{"message":"Hello?"}`, "readToken", s.Thread.ReadToken), as: "pow", status: 409},
	}
}

// roomRows are the catalog, and a page of a room that is not open.
func roomRows(*nodetest.Spec) []specRow {
	return []specRow{
		{row: "§4.1 page /@asha/board, not open", path: "/@asha/board", status: 404},
		{row: "§4.1 catalog", path: "/api/ucp/catalog/search", want: []string{"untrusted_content=true"}},
		{row: "§4.1 catalog of a business", method: "POST", path: "/api/ucp/catalog/search?merchant=bazaar", body: `{}`,
			want: []string{"pagination.has_next_page=false", "untrusted_content=true"}},
	}
}
