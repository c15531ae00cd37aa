package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/dispatch"
	"stoa/protocol"
)

// Accounts is what signing in needs beyond the operations.
type Accounts interface {
	// SignIn spends the ticket of a sign-in link and gives the cookie's secret.
	SignIn(ctx context.Context, ticket, program string) (cookie string, err error)
	// AskLink has a sign-in link sent to an address, if it is an account's.
	AskLink(ctx context.Context, mail string) error
	// SendsMail reports whether the node sends mail at all.
	SendsMail() bool
}

const (
	maxForm       = 16 << 10 // bytes of a form
	maxTokenPages = 20       // of tokens, that the account page looks through for good ones
)

// accountRoutes are the pages of signing in. They are for one reader alone, so
// nothing keeps them and no site map lists them.
func (s *Web) accountRoutes() []Route {
	guarded := http.NewCrossOriginProtection().Handler
	return []Route{
		{Pattern: "/sign-in", Handler: http.HandlerFunc(s.signInPage)},
		{Pattern: "/sign-in", Method: http.MethodPost, Handler: guarded(http.HandlerFunc(s.signIn))},
		{Pattern: "/sign-out", Method: http.MethodPost, Handler: guarded(http.HandlerFunc(s.signOut))},
		{Pattern: "/account", Handler: http.HandlerFunc(s.accountPage)},
		{Pattern: "/account/threads", Handler: http.HandlerFunc(s.inboxPage)},
		{Pattern: "/account/threads/:id", Handler: http.HandlerFunc(s.inboxThread)},
		{Pattern: "/account", Method: http.MethodPost, Handler: guarded(http.HandlerFunc(s.accountForm))},
	}
}

// alone writes a page for this reader alone.
func (s *Web) alone(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Private = true
	v.Status = status
	v.Request = w.Header().Get(requestID)
	s.write(w, r, v)
}

// signInPage shows what a link leads to. Looking spends nothing: previews of
// links look as well.
func (s *Web) signInPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	if ticket == "" && session.OfReader(r, s.Base) != "" {
		if state, err := s.state(r); err == nil && state.SignedIn {
			see(w, r, "/account")
			return
		}
	}
	s.alone(w, r, 0, view{Title: "Sign in", Path: "/sign-in", Body: signInBody(s, ticket, "")})
}

// signIn spends a link, or has one sent.
func (s *Web) signIn(w http.ResponseWriter, r *http.Request) {
	if err := s.posted(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	if err := s.Table.Limits.Write(s.Network(r)); err != nil {
		s.Fail(w, r, err)
		return
	}
	if mail := r.PostForm.Get("mail"); mail != "" && s.Accounts.SendsMail() {
		if err := s.Accounts.AskLink(r.Context(), mail); err != nil {
			s.alone(w, r, protocol.CodeOf(err).Status(), view{Title: "Sign in", Path: "/sign-in", Body: signInBody(s, "", protocol.AsError(err).Detail)})
			return
		}
		s.alone(w, r, 0, view{Title: "Look into your mail", Path: "/sign-in", Body: sentBody()})
		return
	}
	secret, err := s.Accounts.SignIn(r.Context(), r.PostForm.Get("ticket"), r.UserAgent())
	if err != nil {
		if e := protocol.AsError(err); e.Code != protocol.Internal {
			s.alone(w, r, e.Code.Status(), view{Title: "Sign in", Path: "/sign-in", Body: signInBody(s, "", e.Detail)})
			return
		}
		s.Fail(w, r, err)
		return
	}
	http.SetCookie(w, session.SetCookie(s.Base, secret))
	see(w, r, "/account")
}

func see(w http.ResponseWriter, r *http.Request, to string) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head["Content-Type"] = nil // a redirection without a body of its own
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// posted reads a posted form within its bounds.
func (s *Web) posted(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "the form cannot be read, or is longer than %d bytes", maxForm)
	}
	return nil
}

// signOut ends the session of this browser.
func (s *Web) signOut(w http.ResponseWriter, r *http.Request) {
	var page protocol.Page[protocol.SignedIn]
	if err := s.as(r, protocol.ListSessions.Operation, map[string]any{"limit": protocol.MaxLimit}, &page); err == nil {
		for _, x := range page.Items {
			if x.Current {
				if err := s.as(r, protocol.EndSession.Operation, map[string]any{"id": x.ID}, nil); err != nil {
					s.Fail(w, r, err)
					return
				}
			}
		}
	}
	http.SetCookie(w, session.SetCookie(s.Base, ""))
	see(w, r, "/sign-in")
}

// as does an operation as whoever is signed in.
func (s *Web) as(r *http.Request, op *protocol.Operation, args any, into any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	secret := session.Of(r, s.Base)
	if op.ReadOnly {
		secret = session.OfReader(r, s.Base)
	}
	res, err := s.Table.Invoke(r.Context(), dispatch.Request{
		Op: op.Name, Args: raw, Door: "page", Evidence: identity.Evidence{Network: s.Network(r), Session: secret},
	})
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(res.JSON, into)
}

func (s *Web) state(r *http.Request) (state protocol.SessionState, err error) {
	err = s.as(r, protocol.ServiceSession.Operation, protocol.None{}, &state)
	return state, err
}

// account is what the account page shows.
type account struct {
	Account  protocol.Account
	Mail     protocol.AccountMail
	Profiles []ownProfile
	Tokens   []protocol.Token
	Sessions []protocol.SignedIn
	Made     *protocol.MadeToken // a token that was just made: its secret is shown this once
	Refused  *protocol.Error     // what the form that was sent was refused for
	Done     string              // what was done
}

type ownProfile struct {
	Profile protocol.OwnProfile
	Notify  protocol.NotifySettings
	Keys    []protocol.Key
}

// read gathers the account page from the owner's operations.
func (a *account) read(s *Web, r *http.Request) error {
	if err := s.as(r, protocol.GetAccount.Operation, protocol.None{}, &a.Account); err != nil {
		return err
	}
	if err := s.as(r, protocol.GetAccountMail.Operation, protocol.None{}, &a.Mail); err != nil {
		return err
	}
	if err := a.readTokens(s, r); err != nil {
		return err
	}
	var sessions protocol.Page[protocol.SignedIn]
	if err := s.as(r, protocol.ListSessions.Operation, map[string]any{"limit": protocol.MaxLimit}, &sessions); err != nil {
		return err
	}
	a.Sessions = sessions.Items
	for _, handle := range a.Account.Handles {
		own := map[string]any{"handle": handle}
		var p ownProfile
		var keys protocol.Keys
		if err := s.as(r, protocol.GetOwnProfile.Operation, own, &p.Profile); err != nil {
			return err
		}
		if err := s.as(r, protocol.GetNotify.Operation, own, &p.Notify); err != nil {
			return err
		}
		if err := s.as(r, protocol.ListKeys.Operation, own, &keys); err != nil {
			return err
		}
		p.Keys = keys.Items
		a.Profiles = append(a.Profiles, p)
	}
	return nil
}

// readTokens gathers the tokens that are good. Those that were revoked or have run
// out stand among them in the list, in any number.
func (a *account) readTokens(s *Web, r *http.Request) error {
	args := map[string]any{"limit": protocol.MaxLimit}
	for range maxTokenPages {
		var page protocol.Page[protocol.Token]
		if err := s.as(r, protocol.ListTokens.Operation, args, &page); err != nil {
			return err
		}
		for _, t := range page.Items {
			if t.RevokedAt == nil && (t.ExpiresAt == nil || t.ExpiresAt.After(time.Now())) {
				a.Tokens = append(a.Tokens, t)
			}
		}
		if page.Next == nil || len(a.Tokens) >= protocol.MaxTokens {
			break
		}
		args["after"] = *page.Next
	}
	return nil
}

func (s *Web) accountPage(w http.ResponseWriter, r *http.Request) {
	s.showAccount(w, r, &account{Done: doneWords[r.URL.Query().Get("done")]})
}

func (s *Web) showAccount(w http.ResponseWriter, r *http.Request, a *account) {
	switch err := a.read(s, r); {
	case protocol.CodeOf(err) == protocol.Unauthorized:
		see(w, r, "/sign-in")
	case err != nil:
		s.Fail(w, r, err)
	default:
		status := 0
		if a.Refused != nil {
			status = a.Refused.Code.Status()
		}
		s.alone(w, r, status, view{Title: "Your account", Path: "/account", Body: accountBody(s, a)})
	}
}

// doneWords say what a form did, on the page it leads back to.
var doneWords = map[string]string{
	"put_account": "The name was changed.", "put_account_mail": "Noted. A new address counts when its code is entered here.",
	"confirm_account_mail": "Sign-in links go to the new address from now on.", "revoke_token": "The token was revoked.", "end_session": "That browser was signed out.",
	"put_notify": "Where notices go was saved.", "confirm_mail": "The address was confirmed.", "put_own_profile": "The profile was saved.",
	"put_need": "The need was saved.", "delete_need": "The need was deleted.",
	"put_capability": "The capability was saved.", "delete_capability": "The capability was deleted.",
	"make_key": "The node keeps a new key.", "retire_key": "The key was retired.",
}

// accountForm does what a form of the account page asks for: one of the owner's
// operations, with the form's fields as its input.
func (s *Web) accountForm(w http.ResponseWriter, r *http.Request) {
	if err := s.posted(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	name := r.PostForm.Get("do")
	op, a := protocol.Lookup(name), &account{}
	if op == nil || doneWords[name] == "" && op != protocol.CreateToken.Operation {
		s.Fail(w, r, protocol.Errorf(protocol.InvalidRequest, "there is no such form here"))
		return
	}
	args, err := s.input(r, op)
	if err == nil && op == protocol.CreateToken.Operation {
		a.Made = &protocol.MadeToken{}
		err = s.as(r, op, args, a.Made)
	} else if err == nil {
		err = s.as(r, op, args, nil)
	}
	switch {
	case protocol.CodeOf(err) == protocol.Unauthorized:
		see(w, r, "/sign-in")
		return
	case err != nil && protocol.CodeOf(err) == protocol.Internal:
		s.Fail(w, r, err)
		return
	case err != nil:
		a.Made, a.Refused = nil, protocol.AsError(err)
	case a.Made == nil:
		see(w, r, "/account?"+url.Values{"done": {name}}.Encode())
		return
	}
	s.showAccount(w, r, a)
}

// input makes the input of an operation of a form's fields. An empty field is
// one that was left out.
func (s *Web) input(r *http.Request, op *protocol.Operation) (map[string]any, error) {
	args := map[string]any{}
	if op == protocol.PutOwnProfile.Operation {
		return args, s.edited(r, args)
	}
	for name, values := range r.PostForm {
		switch {
		case name == "do" || values[0] == "":
		case name == "scopes" || name == "events":
			args[name] = values
		case listed[name]:
			args[name] = commaList(values[0])
		case name == "expiresInDays":
			n, err := strconv.Atoi(values[0])
			if err != nil {
				return nil, protocol.Invalid(protocol.Fault{Pointer: "/expiresInDays", Code: "wrong-type", Detail: "must be a whole number"})
			}
			args[name] = n
		default:
			args[name] = values[0]
		}
	}
	if op == protocol.PutCapability.Operation {
		return args, priced(r, args)
	}
	return args, nil
}
