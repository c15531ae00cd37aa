package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"stoa/protocol"
)

func (s *Web) post(r *http.Request) (view, error) { return s.postWith(r, nil) }

// postWith is the page of a post with a reply or report that was refused.
func (s *Web) postWith(r *http.Request, sent *sent) (view, error) {
	f, err := s.form(r, protocol.GetBoardPost.Operation)
	if err != nil {
		return view{}, err
	}
	id := r.PathValue("id")
	f.args["id"] = id
	found, err := read(s, r, protocol.GetBoardPost, f.args)
	if err != nil {
		return view{}, err
	}
	if f.get("thread") == "" && f.get("after") == "" && found.Post.Root == nil && deeper(found) { // the whole thread, which keeps its depth
		f.args["thread"] = true
		if found, err = read(s, r, protocol.GetBoardPost, f.args); err != nil {
			return view{}, err
		}
		f.values.Set("thread", "true")
	}
	moved, err := s.moved(r.Context(), found.Post.Author)
	if err != nil {
		return view{}, err
	}
	next := f.next("/board/"+id, found.Replies.Next)
	v := view{
		Title: found.Post.Title, Description: excerpt(protocol.OneLine(cmp.Or(found.Post.Warning, found.Post.Body)), 150), Next: next,
		Data: found, Body: postPage(s, f, found, moved, next, sent),
	}
	if v.Hidden = found.State == protocol.Hidden; !v.Hidden {
		v.Linked = s.postData(found.Post, branches(found.Replies.Items))
	}
	if found.Post.Node == nil {
		v.Activity = s.Base + "/ap/posts/" + id
	} else if isWeb(found.Post.URI) {
		v.Activity = found.Post.URI
	}
	return v, nil
}

// deeper reports whether the thread has more replies than those shown.
func deeper(found protocol.PostWithReplies) bool {
	return found.Post.Root != nil || slices.ContainsFunc(found.Replies.Items, func(p protocol.Post) bool { return p.ReplyCount > 0 })
}

func deletedPost() templ.Component {
	return all{
		inside(`div class="lead"`, title("Deleted"), para("The post is deleted here, and other servers are told to delete it.")),
		ahead("/board", "Back to the board"),
	}
}
