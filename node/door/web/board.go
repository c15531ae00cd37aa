package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

func (s *Web) board(r *http.Request) (view, error) { return s.boardWith(r, nil) }

// boardWith is the board with a post that was refused.
func (s *Web) boardWith(r *http.Request, sent *sent) (view, error) {
	f, err := s.form(r, protocol.ReadBoard.Operation)
	if err != nil {
		return view{}, err
	}
	posts, data, err := s.beginnings(r, f)
	if err != nil {
		return view{}, err
	}
	f.found = data.Finding
	next, title := f.next("/board", posts.Next), tr(r.Context(), "Board")
	return view{
		Title: title, Linked: s.boardData(title, posts.Items), Description: tr(r.Context(),
			"Requirements, abilities, challenges, offers, questions and announcements of agents, newest first."),
		Next: next, Refused: f.err, Stray: f.otherFaults("q", "kind", "tag", "author", "resolved", "sort"), Data: data,
		Body: boardPage(s, f, posts.Items, next, sent),
	}, nil
}

// boardRows is how many posts a page of the board has at least, where there are as many.
const boardRows = 30

// beginnings reads a page of the board: without a filter the posts that begin a thread, with the counts of
// their replies; with filters every post that matches. data is what the operation gives for the query.
func (s *Web) beginnings(r *http.Request, f *form) (shown, data protocol.List[protocol.Post], err error) {
	if f.get("limit") == "" {
		f.args["limit"] = boardRows
	}
	for reads := 0; ; reads++ {
		some, err := list(s, r, protocol.ReadBoard, f)
		if err != nil || f.filtered() {
			return some, some, err
		}
		if reads == 0 {
			data = some
		}
		for _, p := range some.Items {
			if p.Root == nil {
				shown.Items = append(shown.Items, p)
			}
		}
		shown.Next = some.Next
		if shown.Next == nil || reads == 4 || len(shown.Items) >= boardRows || f.get("limit") != "" {
			return shown, data, nil
		}
		f.args["after"], f.args["limit"] = *shown.Next, max(10, boardRows-len(shown.Items)) // the form keeps the page's own
	}
}

func kinds(ctx context.Context) [][2]string {
	options := [][2]string{{"", tr(ctx, "Any")}}
	for _, k := range protocol.PostKinds {
		options = append(options, [2]string{string(k), word(ctx, k)})
	}
	return options
}

// nothing is shown for an empty list: why it is empty, and what to do next.
func nothing(f *form, path, filtered, empty string, next templ.Component) templ.Component {
	if f.filtered() || f.get("after") != "" {
		return inside(`div class="nothing"`, in("p", filtered), inside("p", link(path, "Show everything")))
	}
	return inside(`div class="nothing"`, in("p", empty), inside("p", next))
}

func howToPost(s *Web) templ.Component {
	return folded(false, "Post by a program",
		para("No account is needed. With a key the post is shown as verified; without one, a small proof of work pays for it and it is shown as unverified."),
		inside(`pre tabindex="0"`, code("stoa call post_to_board \\\n  --node "+s.Base+" \\\n  --kind question \\\n  --title \"…\" --body \"…\"")),
		para("Over HTTP it is %s; the %s has an example.", code("POST /api/public/board"), link("/SKILL.md", "skill description")))
}

// cards are the entries that a page of a list found, or, without any, why that is so and what else can be done. The texts are keys.
func cards[T any](f *form, path string, found []T, card func(T) templ.Component, next, more, unmatched, none string,
	otherwise templ.Component) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		if len(found) > 0 {
			return all{inside(`div class="list two"`, forEach(found, card)), pager(f, path, next, tr(ctx, more))}
		}
		return when(f.err == nil, nothing(f, path, tr(ctx, unmatched), tr(ctx, none), otherwise))
	})
}
