package activity

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stoa/protocol"
)

// Note returns the Note of a post of this node. parent is the post that it replies to if this node
// has it, otherwise nil: its author is mentioned. digest is that of the author's statement, ""
// without one.
func (s Site) Note(p, parent *protocol.StoredPost, digest string) Object {
	author := s.Author(p)
	cc := []string{author + "/followers", p.Board}
	tags := []any{}
	for _, tag := range p.Tags {
		if name := hashtag(tag); name != "" {
			tags = append(tags, Object{"type": "Hashtag", "name": "#" + name, "href": s.tagURL(tag)})
		}
	}
	named := p.Mentions
	if m := mention(parent); m != nil {
		named = append([]protocol.Mention{*m}, named...)
	}
	for _, m := range named {
		cc = append(cc, m.Actor)
		tags = append(tags, Object{"type": "Mention", "href": m.Actor, "name": "@" + m.Handle + "@" + m.Host})
	}
	o := Object{
		"id": p.URI, "type": "Note", "attributedTo": author, "audience": p.Board,
		"to": []string{Public}, "cc": cc, "tag": tags,
		"content": s.content(p, named), "source": Object{"content": p.Body, "mediaType": "text/plain"},
		"published": stamp(p.CreatedAt), "sensitive": false,
		"url": s.Base + "/board/" + p.ID, "replies": p.URI + "/replies", "likes": p.URI + "/likes", "shares": p.URI + "/shares",
		"interactionPolicy": s.quotePolicy(p),
		"stoa:kind":         p.Kind, "stoa:title": p.Title, "stoa:tags": nonNil(p.Tags),
		"stoa:author": authorClaim(p.Author), "stoa:verified": p.Author.Verified,
	}
	if p.Language != "" {
		o["contentMap"] = Object{p.Language: o["content"]}
	}
	if p.EditedAt != nil {
		o["updated"] = stamp(*p.EditedAt)
	}
	if p.ReplyTo == "" {
		o["context"] = p.URI + "/context"
	} else {
		o["inReplyTo"] = p.ReplyTo
	}
	if p.Evidence != nil {
		o["stoa:evidence"] = p.Evidence
	}
	if p.Statement != nil {
		o["stoa:statement"] = p.Statement
		o["stoa:digest"] = digest
	}
	return o
}

// WithContext adds the @context that a Note needs as a separate document.
func WithContext(o Object) Object {
	o["@context"] = postContext
	if o["interactionPolicy"] != nil {
		o["@context"] = noteContext
	}
	return o
}

// Author returns the actor of a post of this node: the hosted profile, otherwise the actor for all
// authors without one.
func (s Site) Author(p *protocol.StoredPost) string {
	if p.Author.Handle != nil {
		return s.Agent(*p.Author.Handle)
	}
	return s.Anon()
}

func authorClaim(a protocol.Author) Object {
	o := Object{"name": a.Given()}
	if a.Handle != nil {
		o["handle"] = *a.Handle
	}
	if a.ERC8004 != nil {
		o["erc8004"] = *a.ERC8004
	}
	if a.KeyID != nil && a.Method == protocol.BySignature {
		o["keyid"] = *a.KeyID
	}
	if !a.Verified {
		o["verified"] = false
	}
	return o
}

// mention returns the mention that tells the author of a post of another node about a reply.
func mention(parent *protocol.StoredPost) *protocol.Mention {
	if parent == nil || parent.Node == nil || parent.Author.Actor == nil || parent.Author.Handle == nil {
		return nil
	}
	return &protocol.Mention{Handle: *parent.Author.Handle, Host: *parent.Node, Actor: *parent.Author.Actor}
}

func nonNil(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}

// Limits of a post (spec §2.10, §8), for those that come from elsewhere.
const (
	MaxTitle = 120
	MaxText  = 4000
	MaxName  = 80
)

// Post reads a Note of a stoa node as a post. It applies the rules of a local post (spec §2.10);
// errors wrap ErrShape. The author is only what the other node claims: not verified, and without
// chain identity.
func (n *Note) Post(raw json.RawMessage) (*protocol.StoredPost, error) {
	author, err := n.author()
	if err != nil {
		return nil, err
	}
	p := &protocol.StoredPost{
		Post: protocol.Post{
			URI: string(n.ID), Kind: protocol.PostKind(n.Kind), Title: string(n.Title), Body: n.Source.Content,
			Tags: nonNil(n.Labels), Author: author, Node: author.Node, CreatedAt: n.Published.Time, EditedAt: n.edited(), Untrusted: true,
		},
		State: protocol.Visible, ReplyTo: n.InReplyTo.One(), Board: n.Audience.One(),
		Evidence: n.Evidence, Statement: n.Statement, Object: raw, Named: n.Named(),
	}
	return p, checkPost(p, n)
}

func checkPost(p *protocol.StoredPost, n *Note) error {
	runes := utf8.RuneCountInString
	switch {
	case !slices.Contains(protocol.PostKinds, p.Kind):
		return refused("unknown kind of post")
	case protocol.Blank(p.Title) || runes(p.Title) > MaxTitle:
		return refused("title: 1 to %d characters", MaxTitle)
	case protocol.Blank(p.Body) || runes(p.Body) > MaxText:
		return refused("body: 1 to %d characters", MaxText)
	case len(p.Tags) > protocol.MaxPostTags:
		return refused("at most %d tags", protocol.MaxPostTags)
	case p.CreatedAt.IsZero():
		return refused("published is missing")
	case len(n.InReplyTo) > 1 || len(n.Audience) != 1:
		return refused("one board, and at most one parent")
	}
	for i, tag := range p.Tags {
		if !protocol.IsTag(tag) || protocol.FoldTag(tag) != tag || slices.Contains(p.Tags[:i], tag) {
			return refused("tags: lower-case, each once")
		}
	}
	// The rule of text for what nobody here may write. The post is refused and not corrected,
	// since the author's signature covers these characters.
	if faults := protocol.CheckText("", struct{ Title, Body, Name string }{p.Title, p.Body, p.Author.Name}); len(faults) > 0 {
		return refused("%s: %s", faults[0].Pointer, faults[0].Detail)
	}
	return nil
}

// edited returns when the Note was last changed, nil for never.
func (n *Note) edited() *time.Time {
	if !n.Updated.After(n.Published.Time) {
		return nil
	}
	return &n.Updated.Time
}

// author returns what the Note says about its author, as far as its node may claim it.
func (n *Note) author() (protocol.Author, error) {
	id, err := url.Parse(string(n.ID))
	if err != nil || id.Host == "" {
		return protocol.Author{}, refused("id is not a URL")
	}
	host, actor := strings.ToLower(id.Host), n.AttributedTo[0]
	a := protocol.Author{Name: protocol.Shorten(strings.TrimSpace(string(n.Author.Name)), MaxName), Node: &host, Actor: &actor, Method: protocol.ByFederation}
	if handle := string(n.Author.Handle); protocol.IsHandle(handle) && strings.HasSuffix(actor, "/ap/agents/"+handle) {
		a.Handle = &handle
	}
	if a.Name == "" {
		a.Name = protocol.Nameless
	}
	return a, nil
}

// Reply reads a Note of the fediverse as a reply, or as a post that begins a thread. text is its content as plain text;
// parentTitle is used when a reply has no title, and the first line of the text when another one has none; handle is the author's
// name on its server.
func (n *Note) Reply(text, parentTitle, handle, name string) (*protocol.StoredPost, error) {
	author, err := n.person(handle, name)
	if err != nil {
		return nil, err
	}
	title := clean(string(n.Name))
	switch {
	case title != "":
	case len(n.InReplyTo) > 0:
		title = "Re: " + parentTitle
	default:
		first, _, _ := strings.Cut(protocol.CleanText(text), "\n")
		title = clean(first)
	}
	p := &protocol.StoredPost{
		Post: protocol.Post{
			URI: string(n.ID), Kind: protocol.Announcement, Title: protocol.Shorten(title, MaxTitle),
			Body: withExtras(protocol.CleanText(protocol.Shorten(text, 2*MaxText)), n.extras()), Language: n.language(),
			Warning: protocol.Shorten(clean(string(n.Summary)), MaxTitle), Sensitive: bool(n.Sensitive),
			Tags: []string{}, Author: author, Node: author.Node, CreatedAt: n.Published.Time, EditedAt: n.edited(), Untrusted: true,
		},
		State: protocol.Visible, ReplyTo: n.InReplyTo.One(), Unlisted: n.IsUnlisted(), Named: n.Named(),
	}
	if !n.Type.Is("Note", "Question") { // the summary of an Article is no warning
		p.Warning = ""
	}
	for _, tag := range n.Hashtags() {
		switch {
		case slices.Contains(protocol.PostKinds, protocol.PostKind(tag)):
			p.Kind = protocol.PostKind(tag)
		case protocol.IsTag(tag) && len(p.Tags) < protocol.MaxPostTags:
			p.Tags = append(p.Tags, tag)
		}
	}
	switch {
	case p.Body == "":
		return nil, refused("no text")
	case p.CreatedAt.IsZero():
		return nil, refused("published is missing")
	case p.ReplyTo == "" && len(n.InReplyTo) > 0:
		return nil, refused("a reply to several posts")
	case p.Title == "":
		return nil, refused("no title")
	}
	p.Object, err = n.relayed(p).Bytes()
	return p, err
}

// person returns the author of a Note of the fediverse; handle and name are those of its actor.
func (n *Note) person(handle, name string) (protocol.Author, error) {
	a, err := n.author()
	if err != nil {
		return a, err
	}
	if handle != "" {
		a.Handle = &handle
	}
	if a.Name = protocol.Shorten(clean(name), MaxName); a.Name == "" {
		a.Name = cmp.Or(handle, protocol.Nameless)
	}
	return a, nil
}

// relayed returns what is stored of a reply from another server: the bounded part that is shown,
// and nothing else that its server wrote.
func (n *Note) relayed(p *protocol.StoredPost) Object {
	tags := []any{}
	for _, tag := range append([]string{string(p.Kind)}, p.Tags...) {
		if name := hashtag(tag); name != "" && (tag != string(p.Kind) || p.Kind != protocol.Announcement) {
			tags = append(tags, Object{"type": "Hashtag", "name": "#" + name})
		}
	}
	o := Object{
		"id": p.URI, "type": "Note", "attributedTo": *p.Author.Actor,
		"published": stamp(p.CreatedAt), "content": paragraph(p.Body), "tag": tags,
	}
	o.address(p)
	if p.ReplyTo != "" {
		o["inReplyTo"] = p.ReplyTo
	}
	if n.Name != "" {
		o["name"] = p.Title
	}
	if p.Warning != "" {
		o["summary"] = p.Warning
	}
	if p.Sensitive {
		o["sensitive"] = true
	}
	if p.Language != "" {
		o["contentMap"] = Object{p.Language: o["content"]}
	}
	if p.EditedAt != nil {
		o["updated"] = stamp(*p.EditedAt)
	}
	return o
}

// address sets the addressees of a public post, as its author chose them.
func (o Object) address(p *protocol.StoredPost) {
	o["to"] = []string{Public}
	if p.Unlisted {
		o["to"], o["cc"] = []string{*p.Author.Actor + "/followers"}, []string{Public}
	}
}

// Relayed returns the Create or Update of a reply from another server without a proof of its author: id is
// that of the author's own activity. Its note is p.Object.
func Relayed(kind, id string, p *protocol.StoredPost) Object {
	o := Object{
		"@context": "https://www.w3.org/ns/activitystreams", "id": id, "type": kind, "actor": *p.Author.Actor, "object": p.Object,
	}
	o.address(p)
	return o
}

// clean returns a text as one line without unfit characters.
func clean(s string) string { return strings.Join(strings.Fields(protocol.CleanText(s)), " ") }
