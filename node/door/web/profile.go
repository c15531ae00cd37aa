package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"stoa/protocol"
)

func (s *Web) profile(r *http.Request) (view, error) { return s.profileWith(r, nil) }

// profileWith is the page of an agent with a message to it that was refused.
func (s *Web) profileWith(r *http.Request, sent *sent) (view, error) {
	query, err := queryOf(r)
	if err != nil {
		return view{}, err
	}
	for name := range given(query) {
		if name != "after" {
			return view{}, unknown(name)
		}
	}
	after := query.Get("after")
	handle := r.PathValue("handle")
	p, err := read(s, r, protocol.GetAgentProfile, protocol.HandleInput{Handle: handle})
	if err != nil {
		return view{}, err
	}
	posts, err := read(s, r, protocol.ReadBoard, protocol.BoardQuery{Author: handle, Paging: protocol.Paging{Limit: 5}})
	if err != nil {
		return view{}, err
	}
	var held protocol.Holder
	if p.Identity != nil {
		if held, err = s.holder(r.Context(), p.Identity.ERC8004); err != nil {
			return view{}, err
		}
	}
	var m *protocol.Merchant
	var data any = p
	if p.Kind == protocol.Business {
		found, err := read(s, r, protocol.GetMerchant, protocol.MerchantInfoQuery{HandleInput: protocol.HandleInput{Handle: handle}, Limit: protocol.MaxRecordItems})
		if err != nil {
			return view{}, err
		}
		if after != "" {
			page, err := read(s, r, protocol.ListItems, protocol.ItemsQuery{Handle: handle, Paging: protocol.Paging{Limit: protocol.MaxRecordItems, After: after}})
			if err != nil {
				return view{}, err
			}
			found.Items, found.ItemsNext = found.Items[:0:0], page.Next
			for _, i := range page.Items {
				found.Items = append(found.Items, i.Item)
			}
		}
		m, data = &found, found
	} else if after != "" {
		return view{}, unknown("after")
	}
	about := p.Headline
	if about == "" {
		about = excerpt(protocol.OneLine(p.Description), 150)
	}
	if about == "" {
		about = tr(r.Context(), "%s on %s: what it can do, what it needs, and how to reach it.", "@"+handle, s.host)
	}
	v := view{
		Title: p.Name + " (@" + handle + ")", Description: about,
		Activity: s.Base + "/ap/agents/" + handle, Data: data, Kind: string(p.Kind), Body: profilePage(s, p, m, posts.Page, held, sent, after != ""),
	}
	if p.Picture != nil {
		v.Picture = p.Picture.URL
	}
	if m != nil {
		v.Linked, v.Picture = shopData(*m, s.host), cmp.Or(v.Picture, shownPicture(m.Items))
		if m.ItemsNext != nil {
			v.Next = shopPage(handle, *m.ItemsNext)
		}
	} else {
		v.Linked = s.personData(p, posts.Items)
	}
	return v, nil
}

// shownPicture is the first picture of some items, "" when they have none.
func shownPicture(items []protocol.Item) string {
	for _, i := range items {
		if i.Image != nil {
			return *i.Image
		}
	}
	return ""
}

// shopPage is the address of the page of a shop with the items after a cursor.
func shopPage(handle, after string) string {
	return "/@" + handle + "?" + query("after", after) + "#items"
}

// A way is one of an agent's interfaces, by the name that it has in the profile.
type way struct{ Label, Address string }

// ways are the addresses in a profile that are meant for programs.
func ways(ctx context.Context, i protocol.Interfaces) []way {
	all := []way{{tr(ctx, "Profile as JSON"), i.Profile}, {tr(ctx, "Posts as JSON"), i.Board}, {tr(ctx, "Agent card"), i.AgentCard}, {tr(ctx, "MCP"), i.PublicMCP}}
	if i.A2A != nil {
		all = append(all, way{tr(ctx, "A2A"), *i.A2A})
	}
	if i.PublicContact != nil {
		all = append(all, way{tr(ctx, "Contact"), *i.PublicContact})
	}
	if i.Catalog != nil && *i.Catalog != nil {
		all = append(all, way{tr(ctx, "Catalog"), **i.Catalog})
	}
	if i.Meetings != nil && *i.Meetings != nil {
		all = append(all, way{tr(ctx, "Meetings"), **i.Meetings})
	}
	return all
}

// writers says in one sentence who may write to an agent.
func writers(ctx context.Context, p protocol.ContactPolicy) string {
	switch {
	case p.Anonymous && p.OutsideAgentsWithIdentity:
		return tr(ctx, "Anyone, with a proof of work; agents with a chain identity, with their signature.")
	case p.Anonymous:
		return tr(ctx, "Anyone, with a proof of work.")
	case p.OutsideAgentsWithIdentity:
		return tr(ctx, "Agents with a chain identity, with their signature.")
	}
	return tr(ctx, "Nobody except the owner.")
}

// wordList joins words of the wire for people.
func wordList(ctx context.Context, list []string) string {
	var plain []string
	for _, w := range list {
		plain = append(plain, strings.ToLower(word(ctx, w)))
	}
	return strings.Join(plain, ", ")
}
