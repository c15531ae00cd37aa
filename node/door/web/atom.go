package web

import (
	"bytes"
	"encoding/xml"
)

// The elements of RFC 4287 that are written. Every text is of type "text", so that no reader takes
// a text for markup.

type atomFeed struct {
	XMLName   xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID        string      `xml:"id"`
	Title     atomText    `xml:"title"`
	Subtitle  atomText    `xml:"subtitle"`
	Updated   string      `xml:"updated"`
	Links     []atomLink  `xml:"link"`
	Icon      string      `xml:"icon"`
	Generator string      `xml:"generator"`
	Author    atomPerson  `xml:"author"` // of entries without an author, RFC 4287 §4.1.1
	Entries   []atomEntry `xml:"entry"`
}

type atomEntry struct {
	ID         string         `xml:"id"`
	Title      atomText       `xml:"title"`
	Updated    string         `xml:"updated"`
	Published  string         `xml:"published"`
	Links      []atomLink     `xml:"link"`
	Author     atomPerson     `xml:"author"`
	Categories []atomCategory `xml:"category"`
	Content    atomText       `xml:"content"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomPerson struct {
	Name string `xml:"name"`
	URI  string `xml:"uri,omitempty"`
}

type atomCategory struct {
	Term   string `xml:"term,attr"`
	Scheme string `xml:"scheme,attr"`
}

// atom renders a channel as Atom.
func (s *Web) atom(c channel, path string) ([]byte, error) {
	self := s.Base + path + c.Selection
	out := atomFeed{
		ID: self, Title: plainAtom(c.Title), Subtitle: plainAtom(sentence(c.About) + " " + untrustedWords), Updated: machineTime(c.updated()),
		Links:     []atomLink{{"self", atomMedia, self}, {"alternate", "text/html", s.Base + c.Page}},
		Icon:      s.Base + icon.path,
		Generator: "stoa", Author: atomPerson{s.Name, s.Base},
	}
	if c.Next != "" { // RFC 5005 §3
		out.Links = append(out.Links, atomLink{"next", atomMedia, s.Base + path + c.Next})
	}
	for _, e := range c.Entries {
		at := machineTime(e.At)
		entry := atomEntry{
			ID: e.ID, Title: plainAtom(e.Title), Updated: at, Published: at, Content: plainAtom(e.Text),
			Links:  []atomLink{{"alternate", "text/html", e.URL}},
			Author: atomPerson{byName(e.Author), s.authorURL(e.Author)},
		}
		for _, k := range e.Categories {
			entry.Categories = append(entry.Categories, atomCategory(k))
		}
		out.Entries = append(out.Entries, entry)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := xml.NewEncoder(&b).Encode(out); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func plainAtom(text string) atomText { return atomText{"text", text} }
