package activity

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"stoa/protocol"
)

// A Note is a post as other software writes it: a Note, or a type that is read like one.
type Note struct {
	Context      json.RawMessage `json:"@context"`
	ID           Text            `json:"id"`
	Type         Types           `json:"type"`
	AttributedTo Refs            `json:"attributedTo"`
	Name         Text            `json:"name"`
	Summary      Text            `json:"summary"`
	Content      Text            `json:"content"`
	ContentMap   Languages       `json:"contentMap"`
	Source       Source          `json:"source"`
	InReplyTo    Refs            `json:"inReplyTo"`
	Published    Time            `json:"published"`
	Updated      Time            `json:"updated"`
	To           Refs            `json:"to"`
	CC           Refs            `json:"cc"`
	Audience     Refs            `json:"audience"`
	Tag          Tags            `json:"tag"`
	Attachment   json.RawMessage `json:"attachment"`
	OneOf        json.RawMessage `json:"oneOf"` // choices of a Question
	AnyOf        json.RawMessage `json:"anyOf"`
	Sensitive    Flag            `json:"sensitive"`
	URL          URLs            `json:"url"`

	Thread       Text `json:"context"` // names of the conversation; another one than @context
	Conversation Text `json:"conversation"`

	Kind      Text            `json:"stoa:kind"`
	Title     Text            `json:"stoa:title"`
	Labels    Strings         `json:"stoa:tags"`
	Author    AuthorClaim     `json:"stoa:author"`
	Verified  bool            `json:"stoa:verified"`
	Evidence  json.RawMessage `json:"stoa:evidence"`
	Statement json.RawMessage `json:"stoa:statement"`
	Digest    Text            `json:"stoa:digest"`
}

// NoteTypes are read as posts; a Tombstone is a deleted post.
var NoteTypes = []string{"Note", "Article", "Page", "Question", "Event", "Video"}

// An AuthorClaim is what a node claims about the author of a post.
type AuthorClaim struct {
	Name    Text `json:"name"`
	Handle  Text `json:"handle"`
	ERC8004 Text `json:"erc8004"`
	KeyID   Text `json:"keyid"`
}

// Check refuses a Note that cannot be shown: without id, with several authors, or with too much of
// something.
func (n *Note) Check() error {
	var attachments []json.RawMessage
	if first(n.Attachment) == '[' && json.Unmarshal(n.Attachment, &attachments) != nil {
		return refused("attachment")
	}
	switch {
	case n.ID == "" || len(n.ID) > MaxID:
		return refused("no id, or one that is too long")
	case len(n.To)+len(n.CC) > MaxAddressees:
		return refused("more than %d addressees", MaxAddressees)
	case len(n.AttributedTo) == 0:
		return refused("no author")
	case len(n.Text()) > MaxContent:
		return refused("content of more than %d bytes", MaxContent)
	case len(attachments) > MaxAttachments:
		return refused("more than %d attachments", MaxAttachments)
	}
	return nil
}

// IsStoa reports whether the Note is a post of a stoa node; context is that of the activity around
// it.
func (n *Note) IsStoa(context json.RawMessage) bool {
	return n.Kind != "" && (HasStoa(n.Context) || HasStoa(context))
}

// IsPublic reports whether everyone may read the Note.
func (n *Note) IsPublic() bool { return IsPublic(n.To) || IsPublic(n.CC) }

// IsUnlisted reports whether everyone may read the Note, and its author wants it in no public list: Public is only in cc.
func (n *Note) IsUnlisted() bool { return !IsPublic(n.To) && IsPublic(n.CC) }

// Text returns the content as HTML: content, otherwise the first of contentMap.
func (n *Note) Text() string {
	if n.Content == "" && len(n.ContentMap) > 0 {
		return n.ContentMap[0].Text
	}
	return string(n.Content)
}

// Language returns the language of Text, "" when unknown.
func (n *Note) Language() string {
	for _, l := range n.ContentMap {
		if n.Content == "" || l.Text == string(n.Content) {
			return l.Tag
		}
	}
	return ""
}

// language is Language as far as it is a tag of BCP 47, otherwise "".
func (n *Note) language() string {
	if tag := n.Language(); protocol.IsLanguage(tag) {
		return tag
	}
	return ""
}

// Hashtags returns the names of the Hashtag tags, without # and folded.
func (n *Note) Hashtags() []string {
	names := []string{}
	for _, t := range n.Tag {
		name := protocol.FoldTag(strings.TrimPrefix(string(t.Name), "#"))
		if t.Type.Is("Hashtag") && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// A Tag is a mention, hashtag or emoji.
type Tag struct {
	Type Types `json:"type"`
	Name Text  `json:"name"`
	Href Text  `json:"href"`
}

// Tags are one tag or a list of tags.
type Tags []Tag

func (t *Tags) UnmarshalJSON(b []byte) error {
	*t = nil
	items, err := list(b, MaxTags)
	if err != nil {
		return err
	}
	for _, item := range items {
		var tag Tag
		if first(item) == '{' && json.Unmarshal(item, &tag) == nil {
			*t = append(*t, tag)
		}
	}
	return nil
}

// list reads a value or a list of values; null gives none.
func list(b []byte, most int) ([]json.RawMessage, error) {
	switch first(b) {
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(b, &items); err != nil {
			return nil, refused("%w", err)
		}
		if len(items) > most {
			return nil, refused("more than %d entries in a list", most)
		}
		return items, nil
	case 'n', 0:
		return nil, nil
	}
	return []json.RawMessage{b}, nil
}

// Strings is a list of strings, or one.
type Strings []string

func (s *Strings) UnmarshalJSON(b []byte) error {
	*s = nil
	items, err := list(b, MaxTags)
	if err != nil {
		return err
	}
	for _, item := range items {
		var one string
		if json.Unmarshal(item, &one) != nil {
			return refused("a list of strings")
		}
		*s = append(*s, one)
	}
	return nil
}

// URLs are links: strings or Link objects. Page is the first of type text/html, otherwise the
// first.
type URLs struct{ Page string }

func (u *URLs) UnmarshalJSON(b []byte) error {
	u.Page = ""
	items, err := list(b, MaxAttachments)
	if err != nil {
		return err
	}
	fallback := ""
	for _, item := range items {
		var link struct {
			Href      Text `json:"href"`
			MediaType Text `json:"mediaType"`
		}
		var s Text
		if first(item) == '{' && json.Unmarshal(item, &link) == nil {
			s = link.Href
		} else if s.UnmarshalJSON(item) != nil {
			continue
		}
		if len(s) > MaxID || !strings.HasPrefix(string(s), "https://") && !strings.HasPrefix(string(s), "http://") {
			continue // javascript:, data:
		}
		if fallback == "" {
			fallback = string(s)
		}
		if u.Page == "" && strings.HasPrefix(string(link.MediaType), "text/html") {
			u.Page = string(s)
		}
	}
	if u.Page == "" {
		u.Page = fallback
	}
	return nil
}

// Source is the text a post was written in; some software sends a bare string.
type Source struct {
	Content   string
	MediaType string
}

func (s *Source) UnmarshalJSON(b []byte) error {
	*s = Source{}
	var o struct {
		Content   Text `json:"content"`
		MediaType Text `json:"mediaType"`
	}
	if first(b) == '{' {
		if err := json.Unmarshal(b, &o); err != nil {
			return refused("%w", err)
		}
		*s = Source{string(o.Content), string(o.MediaType)}
	}
	return nil
}

// Languages is contentMap in its original order.
type Languages []struct{ Tag, Text string }

func (l *Languages) UnmarshalJSON(b []byte) error {
	*l = nil
	if first(b) != '{' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return refused("%w", err)
	}
	for dec.More() && len(*l) < 32 {
		name, err := dec.Token()
		if err != nil {
			return refused("%w", err)
		}
		var text Text
		if err := dec.Decode(&text); err != nil {
			return refused("%w", err)
		}
		tag, _ := name.(string)
		*l = append(*l, struct{ Tag, Text string }{tag, string(text)})
	}
	return nil
}
