package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

// The page of a conversation, for who began it.

func (s *Web) threadPage(w http.ResponseWriter, r *http.Request) { s.showThread(w, r, nil) }

// readThread reads the conversation of the page: with the cookie's token, or as who is signed in.
func (s *Web) readThread(r *http.Request, args map[string]any) (c protocol.Conversation, err error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return c, err
	}
	res, err := s.Table.Invoke(r.Context(), hall.Request{Op: protocol.CheckConversation.Name, Args: raw, Door: "page",
		Evidence: identity.Evidence{Network: s.Network(r), Session: session.OfReader(r, s.Base)}})
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(res.JSON, &c)
}

// showThread writes the page, with the message that was refused.
func (s *Web) showThread(w http.ResponseWriter, r *http.Request, f *sent) {
	id := r.PathValue("id")
	args := openedThread.args(r)
	token, _ := args["readToken"].(string)
	if after := r.URL.Query().Get("after"); after != "" {
		args["after"] = after
	}
	c, err := s.readThread(r, args)
	code := protocol.CodeOf(err)
	switch {
	case err == nil:
		next := ""
		if c.Messages.Next != nil {
			next = "/threads/" + id + "?" + query("after", *c.Messages.Next)
		}
		s.writeThread(w, r, f.status(), view{Title: tr(r.Context(), "A conversation with %s", "@"+c.Handle),
			Body: conversation(c, f, next, token, s.Base, s.tells(r))})
	case locked(protocol.ThreadID, id, code):
		s.lockThread(w, r, code, false)
	default:
		s.failSecret(w, r, err)
	}
}

func (s *Web) writeThread(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Path, v.Secret, v.Helps, v.Live, v.Push = "/threads/{id}", true, true, true, true
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	s.writePrivate(w, r, status, v)
}

// lockThread writes the page that asks for the read token; tried says that one did not open it.
func (s *Web) lockThread(w http.ResponseWriter, r *http.Request, code protocol.Code, tried bool) {
	s.writeThread(w, r, code.Status(), view{Title: tr(r.Context(), "A conversation"), Body: threadLocked(r.PathValue("id"), tried)})
}

// threadForm opens the page with a read token, sends another message, or deletes one.
func (s *Web) threadForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.failSecret(w, r, err)
		return
	}
	id, token := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("readToken"))
	if r.PostForm.Has("readToken") {
		_, err := s.readThread(r, map[string]any{"threadId": id, "readToken": token})
		switch code := protocol.CodeOf(err); {
		case err == nil:
			s.open(w, openedThread, id, token)
			redirect(w, r, "/threads/"+id)
		case locked(protocol.ThreadID, id, code):
			s.lockThread(w, r, code, true)
		default:
			s.failSecret(w, r, err)
		}
		return
	}
	if r.PostForm.Get("do") == protocol.AddDevice.Name {
		if err := s.addDevice(r, openedThread); err != nil {
			s.failSecret(w, r, err)
			return
		}
		redirect(w, r, "/threads/"+id+nowTold)
		return
	}
	if r.PostForm.Get("do") == protocol.DeleteMessage.Name {
		args := openedThread.args(r)
		args["messageId"] = r.PostForm.Get("messageId")
		if err := s.invokeOpen(r, protocol.DeleteMessage.Operation, args, nil); err != nil {
			s.failSecret(w, r, err)
			return
		}
		redirect(w, r, "/threads/"+id+"#"+r.PostForm.Get("messageId"))
		return
	}
	f := newSent(r.PostForm)
	args := openedThread.args(r)
	args["message"] = f.values.Get("message")
	var said protocol.Said
	if err := s.invokeForm(r, protocol.ContinueConversation.Operation, args, &said); err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		s.showThread(w, r, f)
		return
	}
	redirect(w, r, "/threads/"+id+"#end")
}

// threadLocked asks for the read token.
func threadLocked(id string, tried bool) templ.Component {
	return all{
		inside(`div class="lead"`, title("A conversation"), para("This page opens in the browser that began the conversation, or with its read token.")),
		notOpened(tried, english("Check the token.")), opening("/threads/"+id, "readToken", english("Read token"), english("Show the conversation")),
	}
}
