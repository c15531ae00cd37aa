package activity_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
)

// quirks.json: shapes that real software sends, own texts and hosts.
func TestQuirks(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("testdata/quirks.json"))(t)
	var file struct {
		Cases []struct {
			ID       string
			Document json.RawMessage
			Expected map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 25)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			if string(c.Document) == "null" || c.Document == nil {
				if c.ID == "published-variants" {
					publishedVariants(t, c.Expected)
				}
				return // the other shapes stand in the captured requests, driven in package federation
			}
			note, act := parse(t, c.Document)
			for want, value := range c.Expected {
				quirk(t, want, value, note, act, c.Document)
			}
		})
	}
}

// parse reads a document both ways; of an Announce or Create it returns the
// innermost object.
func parse(t *testing.T, raw json.RawMessage) (activity.Note, activity.Activity) {
	t.Helper()
	var act activity.Activity
	require.NoError(t, strictjson.DecodeLoose(raw, &act))
	inner := raw
	for depth := 0; act.Type.Is("Announce", "Create") && depth < 2; depth++ {
		inner = act.Object
		var next activity.Activity
		require.NoError(t, strictjson.DecodeLoose(inner, &next))
		if !next.Type.Is("Create") {
			break
		}
		act = next
	}
	var note activity.Note
	require.NoError(t, strictjson.DecodeLoose(inner, &note))
	return note, act
}

func quirk(t *testing.T, want string, value any, note activity.Note, act activity.Activity, raw json.RawMessage) {
	t.Helper()
	switch want {
	case "public":
		require.Equal(t, value, note.IsPublic())
	case "listed":
		require.Equal(t, value, activity.IsPublic(note.To))
	case "tags":
		require.Len(t, value, len(note.Hashtags()))
		for i, tag := range value.([]any) {
			require.Equal(t, tag, note.Hashtags()[i])
		}
	case "language":
		require.Equal(t, value, note.Language())
	case "text_contains":
		require.Contains(t, note.Text(), value)
	case "author":
		require.Equal(t, value, note.AttributedTo[0])
	case "url":
		require.Equal(t, value, note.URL.Page)
	case "title":
		require.Equal(t, value, string(note.Name))
	case "type":
		require.True(t, note.Type.Is(value.(string)))
	case "accepted":
		require.NoError(t, note.Check())
	case "keys":
		var a activity.Actor
		require.NoError(t, strictjson.DecodeLoose(raw, &a))
		require.Len(t, a.PublicKey, int(value.(float64)))
	case "kind": // an object, not an activity: it has no object of its own
		require.Nil(t, act.Object)
		require.True(t, note.Type.Is(activity.NoteTypes...))
	case "report":
		require.True(t, act.Type.Is("Flag"))
		require.NotEmpty(t, act.ObjectRefs())
	case "signature_member", "needs", "answer": // driven in package federation
	default:
		t.Fatalf("no check for %q", want)
	}
}

func publishedVariants(t *testing.T, expected map[string]any) {
	t.Helper()
	read := func(s any) (activity.Time, error) {
		var at activity.Time
		return at, at.UnmarshalJSON([]byte(`"` + s.(string) + `"`))
	}
	for _, s := range expected["accept"].([]any) {
		at := must.Get(read(s))(t)
		require.Equal(t, 10, at.Hour())
	}
	require.ErrorIs(t, must.Err(read("2026-11-20T10:00:00")), activity.ErrShape)
}

func TestRefs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]activity.Refs{
		`"a"`: {"a"}, `null`: nil, `""`: nil, `[]`: nil, `{}`: nil, `{"id":"a"}`: {"a"}, `{"href":"a"}`: {"a"},
		`["a",{"id":"b"},null]`: {"a", "b"}, `{"ID":"a"}`: nil, `{"id":null}`: nil,
	} {
		var r activity.Refs
		require.NoError(t, r.UnmarshalJSON([]byte(in)), in)
		require.Equal(t, want, r, in)
	}
	for _, in := range []string{
		`1`, `true`, `[["a"]]`, `[1]`, `"` + strings.Repeat("x", activity.MaxID+1) + `"`, `[` + strings.Repeat(`"a",`, activity.MaxAddressees) + `"a"]`,
	} {
		var r activity.Refs
		require.ErrorIs(t, r.UnmarshalJSON([]byte(in)), activity.ErrShape, in[:min(20, len(in))])
	}
}

func TestHasStoa(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		`{"stoa":"urn:stoa:ns:v1#"}`: true, `["https://www.w3.org/ns/activitystreams",{"a":"b","stoa":"urn:stoa:ns:v1#"}]`: true,
		`"urn:stoa:ns:v1#"`: false, `null`: false, ``: false, `{"stoa":"https://evil.example/"}`: false,
		`[{"stoa":"urn:stoa:ns:v1#"},{"stoa":"https://evil.example/"}]`: false, `{"Stoa":"urn:stoa:ns:v1#"}`: false,
	} {
		require.Equal(t, want, activity.HasStoa(json.RawMessage(in)), in)
	}
}

func TestActivityCheck(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		`{"id":"https://a/1","type":"Create","actor":"https://a/u"}`:                                            true,
		`{"id":"https://a/1","type":"Create","actor":["https://a/u"]}`:                                          true,
		`{"id":"https://a/1","type":"Create","actor":["https://a/u","https://a/v"]}`:                            false,
		`{"id":"https://a/1","type":"Create"}`:                                                                  false,
		`{"type":"Create","actor":"https://a/u"}`:                                                               false,
		`{"id":"https://a/1","actor":"https://a/u"}`:                                                            false,
		`{"id":"https://a/1","type":"Create","actor":"https://a/u","@graph":[]}`:                                false,
		`{"@context":["x",{"actor":"https://e/x"}],"id":"https://a/1","type":"Create","actor":"https://a/u"}`:   false,
		`{"@context":{"type":"@type","x":"as:actor"},"id":"https://a/1","type":"Create","actor":"https://a/u"}`: true,
		`{"id":"https://a/1","type":"Create","actor":"https://a/u","@reverse":{"actor":"x"}}`:                   false,
		`{"id":"https://a/1","type":"Create","actor":"https://a/u","@included":[{"id":"x"}]}`:                   false,
		`{"id":"https://a/1","type":"Create","actor":"https://a/u","@type":"https://x/Delete"}`:                 false,
	} {
		var a activity.Activity
		require.NoError(t, strictjson.DecodeLoose([]byte(in), &a))
		require.Equal(t, ok, a.Check() == nil, in)
	}
}

var site = activity.Site{Base: "https://n1.example", Host: "n1.example", Software: "stoa", Version: "1", PublicKeyPEM: "PEM", Multikey: "z6Mk"}

func ptr[T any](v T) *T { return &v }

func ada() *protocol.StoredPost {
	return &protocol.StoredPost{
		Post: protocol.Post{
			ID: "post_01", URI: "https://n1.example/ap/posts/post_01", Kind: protocol.Requirement, Title: "Hand-made paper",
			Body: "200 sheets of hand-made paper, Jaipur.\nSamples first. Budget ₹2,400.", Tags: []string{"paper", "hand.made"},
			Author: protocol.Author{
				Name: "Ada", Handle: ptr("ada"), Verified: true, Method: protocol.BySession,
				ERC8004: ptr("eip155:84532:0xebd1edc26fbdaa767ac49916009bea69c8645045:17"),
			},
			CreatedAt: time.Date(2026, 11, 20, 10, 0, 2, 0, time.UTC),
		},
		Board: "https://n1.example/ap/board",
	}
}

// The proposed document, but for the ids, the statement and the language.
func TestCreate_IsTheProposedShape(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("testdata/stoa-proposed-post.json"))(t)
	var file struct {
		Create map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "01M7Y0AAAAAAAAAAAAAAAAAAAA", "post_01")), &file))
	want := file.Create
	delete(want, "proof")
	note := want["object"].(map[string]any)
	for _, name := range []string{"contentMap", "stoa:statement", "stoa:digest"} {
		delete(note, name)
	}
	// What posts have had since: likes and boosts, and who may quote them.
	note["likes"], note["shares"] = note["id"].(string)+"/likes", note["id"].(string)+"/shares"
	note["interactionPolicy"] = map[string]any{"canQuote": map[string]any{"automaticApproval": []string{activity.Public}}}
	term := func(name string) any { return map[string]string{"@id": "gts:" + name, "@type": "@id"} }
	want["@context"] = append(want["@context"].([]any), map[string]any{
		"gts":               "https://gotosocial.org/ns#",
		"interactionPolicy": term("interactionPolicy"), "canQuote": term("canQuote"), "automaticApproval": term("automaticApproval"),
	})
	got := must.Get(site.Create(ada(), nil, "").Bytes())(t)
	wanted := must.Get(json.Marshal(want))(t)
	require.JSONEq(t, string(wanted), string(got))
}

// A post comes out of its own Note as it went in.
func TestPost_RoundTrip(t *testing.T) {
	t.Parallel()
	p := ada()
	p.ReplyTo = "https://n2.example/ap/posts/post_02"
	p.Evidence = json.RawMessage(`{"type":"HttpMessageSignature"}`)
	raw := must.Get(activity.WithContext(site.Note(p, nil, "")).Bytes())(t)
	var n activity.Note
	require.NoError(t, strictjson.DecodeLoose(raw, &n))
	require.NoError(t, n.Check())
	require.True(t, n.IsStoa(nil))
	require.Empty(t, n.Name, "a name becomes a content warning")
	got := must.Get(n.Post(raw))(t)
	require.Equal(t, []any{p.URI, p.Kind, p.Title, p.Body, p.Tags, p.ReplyTo, p.Board, p.CreatedAt},
		[]any{got.URI, got.Kind, got.Title, got.Body, got.Tags, got.ReplyTo, got.Board, got.CreatedAt})
	require.Equal(t, protocol.Author{
		Name: "Ada", Handle: ptr("ada"), Node: ptr("n1.example"), Actor: ptr("https://n1.example/ap/agents/ada"), Method: protocol.ByFederation,
	}, got.Author, "another node's word verifies nobody")
	require.JSONEq(t, string(p.Evidence), string(got.Evidence))
}

func TestNote_Authors(t *testing.T) {
	t.Parallel()
	anon := ada()
	anon.Author = protocol.Author{Name: "<b>Eve</b>", Method: protocol.ByProof}
	o := site.Note(anon, nil, "")
	require.Equal(t, "https://n1.example/ap/anon", o["attributedTo"])
	require.Equal(t, activity.Object{"name": "<b>Eve</b>", "verified": false}, o["stoa:author"])
	require.True(t, strings.HasPrefix(o["content"].(string), "<p>&lt;b&gt;Eve&lt;/b&gt; (unverified):</p><p><strong>Requirement: "), o["content"])

	chain := ada()
	chain.Author = protocol.Author{Name: "Zoe", ERC8004: ptr("eip155:1:0xebd1edc26fbdaa767ac49916009bea69c8645045:1"), KeyID: ptr("k"), Verified: true,
		Method: protocol.BySignature}
	o = site.Note(chain, nil, "")
	require.Equal(t, "https://n1.example/ap/anon", o["attributedTo"])
	require.Equal(t, activity.Object{"name": "Zoe", "erc8004": *chain.Author.ERC8004, "keyid": "k"}, o["stoa:author"])
}

func TestNote_MentionsTheParentOfElsewhere(t *testing.T) {
	t.Parallel()
	p, parent := ada(), ada()
	p.ReplyTo = "https://m.example/n/1"
	parent.Node, parent.Author.Handle, parent.Author.Actor = ptr("m.example"), ptr("carol"), ptr("https://m.example/u/carol")
	o := site.Note(p, parent, "")
	require.Contains(t, o["cc"], "https://m.example/u/carol")
	require.Contains(t, o["tag"], activity.Object{"type": "Mention", "href": "https://m.example/u/carol", "name": "@carol@m.example"})
}

func TestPost_Refuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(activity.Object){
		"kind":           func(o activity.Object) { o["stoa:kind"] = "poll" },
		"no title":       func(o activity.Object) { o["stoa:title"] = "" },
		"long title":     func(o activity.Object) { o["stoa:title"] = strings.Repeat("é", 121) },
		"long body":      func(o activity.Object) { o["source"] = activity.Object{"content": strings.Repeat("é", 4001)} },
		"no source":      func(o activity.Object) { delete(o, "source") },
		"tags":           func(o activity.Object) { o["stoa:tags"] = []string{"Paper"} },
		"tag twice":      func(o activity.Object) { o["stoa:tags"] = []string{"a1", "a1"} },
		"many tags":      func(o activity.Object) { o["stoa:tags"] = strings.Split("aa bb cc dd ee ff gg hh ii jj kk ll mm", " ") },
		"two boards":     func(o activity.Object) { o["audience"] = []string{"https://a/1", "https://a/2"} },
		"no time":        func(o activity.Object) { delete(o, "published") },
		"bidi override":  func(o activity.Object) { o["stoa:title"] = "a\u202eb" },
		"bidi in a name": func(o activity.Object) { o["stoa:author"] = activity.Object{"name": "a\u202eb"} },
	} {
		o := site.Note(ada(), nil, "")
		change(o)
		raw := must.Get(o.Bytes())(t)
		var n activity.Note
		require.NoError(t, strictjson.DecodeLoose(raw, &n))
		require.ErrorIs(t, must.Err(n.Post(raw)), activity.ErrShape, name)
	}
}

func TestParagraphLinks(t *testing.T) {
	t.Parallel()
	p := ada()
	p.Tags = []string{"2026"}
	p.Body = "See https://a.example/x?a=1&b=2, httpd <b>.\n\n\nhttp:// and (http://b.example/)."
	require.Equal(t, `<p><strong>Requirement: Hand-made paper</strong></p>`+
		`<p>See <a href="https://a.example/x?a=1&amp;b=2" rel="nofollow noopener noreferrer">https://a.example/x?a=1&amp;b=2</a>, httpd &lt;b&gt;.</p>`+
		`<p>http:// and (<a href="http://b.example/" rel="nofollow noopener noreferrer">http://b.example/</a>).</p>`, site.Note(p, nil, "")["content"])
}

// A string value that reads as a URI is lost in GoToSocial (2025).
func TestAgentActor_WrapsURIs(t *testing.T) {
	t.Parallel()
	o := site.AgentActor(protocol.ProfileDraft{Handle: "ada", Name: "Ada", Kind: protocol.Person, Headline: "Paper"},
		"eip155:1:0xebd1edc26fbdaa767ac49916009bea69c8645045:1", "hash", time.Unix(0, 0), time.Unix(0, 0))
	raw := must.Get(o.Bytes())(t)
	var a activity.Actor
	require.NoError(t, strictjson.DecodeLoose(raw, &a))
	require.Equal(t, "https://n1.example/ap/inbox", string(a.Endpoints.SharedInbox))
	require.True(t, a.Implements(activity.LogFeature))
	_, ok := a.AssertionMethod.Find("https://n1.example/ap/agents/ada#ed25519-key")
	require.True(t, ok)
	require.Contains(t, string(raw), `"<span>eip155:1:`)
	require.Contains(t, string(raw), `"https://www.w3.org/ns/did/v1"`)
}

func FuzzParse(f *testing.F) {
	raw, err := os.ReadFile("testdata/quirks.json")
	if err != nil {
		f.Fatal(err)
	}
	var file struct {
		Cases []struct{ Document json.RawMessage }
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		f.Fatal(err)
	}
	for _, c := range file.Cases {
		f.Add([]byte(c.Document))
	}
	f.Add([]byte(`{"id":"https://a/1","type":"Create","actor":"x","object":{"url":[{"href":1}],"tag":[[]],"contentMap":{"a":[]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a activity.Activity
		if strictjson.DecodeLoose(raw, &a) == nil && a.Check() == nil {
			require.Len(t, a.Actor, 1)
			a.ObjectRefs()
		}
		var n activity.Note
		if strictjson.DecodeLoose(raw, &n) == nil && n.Check() == nil {
			if p, err := n.Post(raw); err == nil {
				require.LessOrEqual(t, len(p.Tags), protocol.MaxPostTags)
				require.False(t, p.Author.Verified)
			}
			if p, err := n.Reply(n.Text(), "x", "h", string(n.Name)); err == nil {
				require.Empty(t, protocol.CheckText("", p))
			}
		}
		var who activity.Actor
		_ = strictjson.DecodeLoose(raw, &who)
	})
}
