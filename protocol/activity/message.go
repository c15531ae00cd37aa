package activity

import (
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// Named returns the actors that a Note addresses or mentions, each once.
func (n *Note) Named() (all []string) {
	add := func(id string) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	for _, id := range slices.Concat(n.To, n.CC) {
		add(id)
	}
	for _, t := range n.Tag {
		if t.Type.Is("Mention") {
			add(string(t.Href))
		}
	}
	return all
}

// Message reads a Note of the fediverse as a message to an agent. text is its content as plain text; handle and name are those of
// its author's actor. A hashtag may name the kind. errors wrap ErrShape.
func (n *Note) Message(text, handle, name string) (*protocol.RemoteMessage, error) {
	author, err := n.person(handle, name)
	if err != nil {
		return nil, err
	}
	author.Complete(time.Time{})
	if warning := clean(string(n.Summary)); warning != "" {
		text = protocol.Shorten(warning, MaxTitle) + "\n\n" + text
	}
	text = withExtras(protocol.CleanText(protocol.Shorten(text, 2*MaxText)), n.extras())
	m := &protocol.RemoteMessage{
		URI: string(n.ID), Author: author, Text: protocol.Shorten(text, protocol.MaxRemoteMessage), Kind: protocol.Question,
		InReplyTo: n.InReplyTo.One(), Context: conversationName(n.Thread), Conversation: conversationName(n.Conversation),
		Visibility: protocol.Direct, EditedAt: n.edited(),
	}
	switch {
	case IsPublic(n.To):
		m.Visibility = protocol.Public
	case n.IsPublic():
		m.Visibility = protocol.Unlisted
	}
	for _, tag := range n.Hashtags() {
		if slices.Contains(protocol.ContactKinds, tag) {
			m.Kind = protocol.ContactKind(tag)
		}
	}
	if protocol.Blank(m.Text) {
		return nil, refused("no text")
	}
	return m, nil
}

// conversationName is the name of a conversation, as far as it is as short as an id.
func conversationName(t Text) string {
	if len(t) > MaxID {
		return ""
	}
	return string(t)
}

// A Message is what an agent of this node writes to a person of another server.
type Message struct {
	URI, Agent   string // ids of the Note and of the agent
	To           string // actor of the person
	Name         string // of the person on its server, "" when not known
	Host         string // of that server
	Text         string
	InReplyTo    string
	Context      string // name of the conversation on that server, "" for none
	Conversation string
	Visibility   protocol.Visibility
	At           time.Time
}

var messageContext = []any{
	"https://www.w3.org/ns/activitystreams",
	Object{"sensitive": "as:sensitive", "ostatus": "http://ostatus.org#", "conversation": "ostatus:conversation"},
}

// Note returns the Note of a message. Its addressee is mentioned, in a tag and at the beginning of the text, as servers of the
// fediverse expect of what is to be shown to somebody.
func (m Message) Note() Object {
	o := Object{
		"@context": messageContext, "id": m.URI, "type": "Note", "attributedTo": m.Agent, "published": stamp(m.At), "sensitive": false,
		"content": m.content(), "source": Object{"content": m.Text, "mediaType": "text/plain"},
		"tag": []any{Object{"type": "Mention", "href": m.To, "name": "@" + m.Name + "@" + m.Host}},
	}
	switch m.Visibility {
	case protocol.Public:
		o["to"], o["cc"] = []string{Public}, []string{m.To}
	case protocol.Unlisted:
		o["to"], o["cc"] = []string{m.To}, []string{Public}
	default:
		o["to"], o["cc"] = []string{m.To}, []string{}
	}
	for member, value := range map[string]string{"inReplyTo": m.InReplyTo, "context": m.Context, "conversation": m.Conversation} {
		if value != "" {
			o[member] = value
		}
	}
	return o
}

// Create returns the Create of a message.
func (m Message) Create() Object {
	note := m.Note()
	return Object{
		"@context": note["@context"], "id": m.URI + "#create", "type": "Create", "actor": m.Agent,
		"to": note["to"], "cc": note["cc"], "published": note["published"], "object": note.Inside(),
	}
}

func (m Message) content() string {
	mention := mentionLink(protocol.Mention{Handle: m.Name, Host: m.Host, Actor: m.To})
	return "<p>" + mention + " " + strings.TrimPrefix(paragraph(m.Text), "<p>")
}
