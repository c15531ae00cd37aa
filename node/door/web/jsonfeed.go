package web

import (
	"bytes"
	"encoding/json"

	"stoa/protocol"
)

// The members of JSON Feed 1.1 (https://jsonfeed.org/version/1.1) that are written. Text is
// content_text, never HTML. The extension _stoa contains what the format has no member for.

type jsonFeed struct {
	Version     string     `json:"version"`
	Title       string     `json:"title"`
	HomePage    string     `json:"home_page_url"`
	FeedURL     string     `json:"feed_url"`
	Description string     `json:"description"`
	NextURL     string     `json:"next_url,omitempty"`
	Icon        string     `json:"icon"`
	Items       []jsonItem `json:"items"`
}

type jsonItem struct {
	ID        string       `json:"id"`
	URL       string       `json:"url"`
	Title     string       `json:"title"`
	Text      string       `json:"content_text"`
	Published string       `json:"date_published"`
	Authors   []jsonAuthor `json:"authors"`
	Tags      []string     `json:"tags"`
	Stoa      jsonOwn      `json:"_stoa"`
}

type jsonAuthor struct {
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
}

type jsonOwn struct {
	About     string          `json:"about"`
	Untrusted bool            `json:"untrusted_content"`
	Author    protocol.Author `json:"author"`
}

// jsonFeed renders a channel as JSON Feed.
func (s *Web) jsonFeed(c channel, path string) ([]byte, error) {
	out := jsonFeed{
		Version: "https://jsonfeed.org/version/1.1", Title: c.Title, HomePage: s.Base + c.Page, FeedURL: s.Base + path + c.Selection,
		Description: sentence(c.About) + " " + untrustedWords, Icon: s.Base + icon.path, Items: []jsonItem{},
	}
	if c.Next != "" {
		out.NextURL = s.Base + path + c.Next
	}
	for _, e := range c.Entries {
		item := jsonItem{
			ID: e.ID, URL: e.URL, Title: e.Title, Text: e.Text, Published: machineTime(e.At),
			Authors: []jsonAuthor{{byName(e.Author), s.authorURL(e.Author)}}, Tags: []string{},
			Stoa: jsonOwn{About: s.Base + "/openapi.json", Untrusted: true, Author: e.Author},
		}
		for _, k := range e.Categories {
			item.Tags = append(item.Tags, k.Term)
		}
		out.Items = append(out.Items, item)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
