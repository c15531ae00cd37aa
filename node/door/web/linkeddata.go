package web

import (
	"cmp"
	"strings"

	"stoa/protocol"
)

// Pages as data of schema.org, for search engines: JSON-LD, with the members that Google's documents on
// ProfilePage and DiscussionForumPosting name. shopData is that of a business.

// A thing is a node of schema.org in JSON-LD.
type thing map[string]any

const schemaOrg = "https://schema.org/"

// set adds a member that has a value.
func (t thing) set(name string, value any) {
	switch v := value.(type) {
	case string:
		if v != "" {
			t[name] = v
		}
	case *string:
		if v != nil {
			t.set(name, *v)
		}
	default:
		t[name] = v
	}
}

// document makes a thing a document of its own.
func (t thing) document() thing {
	t["@context"] = "https://schema.org"
	return t
}

// personData is the page of a person, with the newest posts.
func (s *Web) personData(p protocol.Profile, posts []protocol.Post) thing {
	page := s.Base + "/@" + p.Handle
	who := thing{"@type": "Person", "@id": page + "#person", "name": p.Name, "alternateName": "@" + p.Handle + "@" + s.host, "url": page}
	who.set("description", strings.TrimSpace(p.Headline+" "+p.Description))
	if p.Identity != nil {
		who.set("identifier", p.Identity.ERC8004)
	}
	if len(p.Languages) > 0 {
		who["knowsLanguage"] = p.Languages
	}
	if len(p.Tags) > 0 {
		who["knowsAbout"] = p.Tags
	}
	t := thing{"@type": "ProfilePage", "url": page, "mainEntity": who}
	if p.UpdatedAt != nil {
		t["dateModified"] = machineTime(*p.UpdatedAt)
	}
	if len(posts) > 0 {
		t["hasPart"] = s.headings(posts)
	}
	return t.document()
}

// boardData is a page of the board.
func (s *Web) boardData(name string, posts []protocol.Post) thing {
	return s.collection("/board", name, s.headings(posts))
}

// collection is a page that lists others.
func (s *Web) collection(path, name string, parts []thing) thing {
	t := thing{"@type": "CollectionPage", "url": s.Base + path, "name": name}
	if len(parts) > 0 {
		t["hasPart"] = parts
	}
	return t.document()
}

// entryData is a page of a list: of an agent, or of what it has.
func entryData(url, name, headline string) thing {
	t := thing{"@type": "WebPage", "url": url, "name": name}
	t.set("description", headline)
	return t
}

// headings are posts of a list, which have their texts on their own pages.
func (s *Web) headings(posts []protocol.Post) (list []thing) {
	for _, p := range posts {
		list = append(list, s.heading("DiscussionForumPosting", p))
	}
	return list
}

// heading is a post without its text.
func (s *Web) heading(kind string, p protocol.Post) thing {
	t := thing{"@type": kind, "url": p.URL, "datePublished": machineTime(p.CreatedAt), "author": s.authorData(p.Author)}
	t.set("headline", p.Title)
	return t
}

// authorData is who wrote a post. Schema.org knows people and organizations only, and a post does not say which.
func (s *Web) authorData(a protocol.Author) thing {
	t := thing{"@type": "Person", "name": a.Name}
	if path := authorPath(a); path != "" {
		t["url"] = s.Base + path
	} else if a.Actor != nil && isWeb(*a.Actor) {
		t["url"] = *a.Actor
	}
	if a.Verified { // otherwise anyone could claim it
		t.set("identifier", a.ERC8004)
	}
	return t
}

// postData is a post with the replies that its page shows, as the tree that the page shows.
func (s *Web) postData(p protocol.Post, replies []branch) thing {
	t := s.fullPost("DiscussionForumPosting", p)
	t["@id"] = p.URL
	forum := thing{"@type": "WebPage", "url": s.Base + "/board"}
	if p.Root != nil {
		forum = thing{"@type": "DiscussionForumPosting", "url": s.Base + "/board/" + *p.Root}
	}
	t["isPartOf"] = forum
	if p.Node != nil && isWeb(p.URI) {
		t["sameAs"] = p.URI
	}
	t["interactionStatistic"] = interactions(p)
	s.addComments(t, replies)
	return t.document()
}

// interactions are the replies of a post, in a list with its likes and boosts if it has some.
func interactions(p protocol.Post) any {
	var list []thing
	for _, c := range []struct {
		action string
		n      int
	}{{"CommentAction", p.ReplyCount}, {"LikeAction", p.Likes}, {"ShareAction", p.Shares}} {
		if c.n > 0 || list == nil {
			list = append(list, thing{"@type": "InteractionCounter", "interactionType": thing{"@type": c.action}, "userInteractionCount": c.n})
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func (s *Web) addComments(t thing, replies []branch) {
	var list []thing
	for _, b := range replies {
		c := s.fullPost("Comment", b.Post)
		s.addComments(c, b.below)
		list = append(list, c)
	}
	if list != nil {
		t["comment"] = list
	}
}

// fullPost is a post with its text.
func (s *Web) fullPost(kind string, p protocol.Post) thing {
	t := s.heading(kind, p)
	t["text"] = cmp.Or(p.Body, p.Title)
	t.set("keywords", strings.Join(p.Tags, ", "))
	return t
}
