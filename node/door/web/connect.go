package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page on which an owner lets a program act for him: the authorization endpoint of OAuth.

const (
	askedCookie = "stoa_asked" // what a program asked, while its owner signs in
	maxAsked    = 3500         // bytes of it
	askedFor    = 15 * 60      // seconds
)

// connecting is what the page shows.
type connecting struct {
	program protocol.Program
	handles []string
	asked   url.Values // what the program sent
	sent    *sent      // the form that was refused; nil for none
}

// connectPage asks the owner. What a program sends wrong is said here, and not to the program: who sent the browser is not known yet.
func (s *Web) connectPage(w http.ResponseWriter, r *http.Request) {
	if state, err := s.state(r); err != nil || !state.SignedIn {
		s.rememberAsked(w, r.URL.RawQuery)
		redirect(w, r, "/sign-in")
		return
	}
	s.rememberAsked(w, "")
	q := r.URL.Query()
	for name, values := range q {
		if len(values) > 1 { // RFC 6749 §3.1
			s.connectFailed(w, r, protocol.Errorf(protocol.InvalidRequest, "the program sends %s twice", protocol.Clip(name, 40)))
			return
		}
	}
	s.showConnect(w, r, connecting{asked: q})
}

func (s *Web) showConnect(w http.ResponseWriter, r *http.Request, in connecting) {
	args := map[string]any{}
	for name, values := range in.asked {
		if _, known := memberAt(protocol.ReadClientRequest.In, name); known && values[0] != "" {
			args[name] = values[0]
		}
	}
	if err := s.invokeSignedIn(r, protocol.ReadClientRequest.Operation, args, &in.program); err != nil {
		s.connectFailed(w, r, err)
		return
	}
	var who protocol.Account
	if err := s.invokeSignedIn(r, protocol.GetAccount.Operation, protocol.None{}, &who); err != nil {
		s.Fail(w, r, err)
		return
	}
	in.handles = who.Handles
	s.writePrivate(w, r, in.sent.status(), view{Title: tr(r.Context(), "Let a program act for you?"), Path: protocol.OAuthAuthorizePath,
		Body: connectBody(in)})
}

// connectFailed says what is wrong with what a program sent.
func (s *Web) connectFailed(w http.ResponseWriter, r *http.Request, err error) {
	e := protocol.AsError(err)
	if e.Code == protocol.Internal || e.Code == protocol.Unauthorized {
		s.Fail(w, r, err)
		return
	}
	title := tr(r.Context(), "The program cannot be connected")
	s.writePrivate(w, r, e.Code.Status(), view{Title: title, Path: protocol.OAuthAuthorizePath,
		Body: linkEnded(title, refusalText(r.Context(), e), para("Nothing was allowed. Tell whoever makes the program."))})
}

// connectForm lets the program act, and leads the browser back to it.
func (s *Web) connectForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, protocol.OAuthAuthorizePath)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	var out protocol.ClientAnswer
	if err := s.invokeSignedIn(r, protocol.GrantClient.Operation, inputOf(protocol.GrantClient.Operation, f.values), &out); err != nil {
		if e := protocol.AsError(err); e.Code != protocol.Validation {
			s.connectFailed(w, r, err)
			return
		}
		f.refuse(r.Context(), protocol.AsError(err))
		s.showConnect(w, r, connecting{asked: f.values, sent: f})
		return
	}
	// A redirect would be one of the form, which the page's policy allows to this node only, and with it all that follow.
	s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Connected"), Path: protocol.OAuthAuthorizePath, Onward: out.Location,
		Body: all{inside(`div class="lead"`, title("Connected"), para("Your browser goes back to the program now.")), ahead(out.Location, "Go back to the program"),
			hint("You can end what it may do at any time, under %s.", link(tokensPath, "Tokens"))}})
}

// rememberAsked keeps what a program asked while its owner signs in, by whatever way, in this browser; "" forgets it.
func (s *Web) rememberAsked(w http.ResponseWriter, query string) {
	c := &http.Cookie{Name: askedCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(query)), Path: "/", HttpOnly: true,
		Secure: strings.HasPrefix(s.Base, "https://"), SameSite: http.SameSiteLaxMode, MaxAge: askedFor}
	if query == "" || len(c.Value) > maxAsked {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// asked returns the page of a program that waits for its owner to sign in, "" for none.
func asked(r *http.Request) string {
	c, err := r.Cookie(askedCookie)
	if err != nil {
		return ""
	}
	query, err := base64.RawURLEncoding.DecodeString(c.Value)
	if _, wrong := url.ParseQuery(string(query)); errors.Join(err, wrong) != nil || len(query) == 0 {
		return ""
	}
	return protocol.OAuthAuthorizePath + "?" + string(query)
}

var daysToAsk = [][2]string{
	{"1", english("a day")}, {"7", english("a week")}, {"30", english("30 days")}, {"90", english("90 days")}, {"365", english("a year")},
}

func connectBody(in connecting) templ.Component {
	p, op := in.program, protocol.GrantClient.Operation
	strong := func(text string) templ.Component { return inside("strong", called(text)) }
	who := all{para("%s asks to act for you here.", strong(p.Name))}
	switch {
	case p.Known && (p.Returns == p.Host || p.Returns == ""):
		who = append(who, para("It is the program of %s, which vouches for this name.", strong(p.Host)))
	case p.Known:
		who = append(who, para("It is the program of %s, which vouches for this name. Your browser goes back to %s.", strong(p.Host), called(p.Returns)))
	case p.Returns != "":
		who = append(who, para("It calls itself so; nobody vouches for the name. Your browser goes back to %s.", strong(p.Returns)))
	default:
		who = append(who, para("It calls itself so; nobody vouches for the name. Your browser goes back to a program on this computer."))
	}
	shown := url.Values{"expiresInDays": {"90"}}
	given := slices.DeleteFunc(slices.Clone(scopeWords), func(x [2]string) bool { return !slices.Contains(p.Scopes, protocol.Scope(x[0])) })
	for _, s := range p.Scopes {
		shown.Add("scopes", string(s))
	}
	pairs := hidden("do", op.Name)
	for name, values := range in.asked {
		if _, known := memberAt(protocol.ReadClientRequest.In, name); known {
			pairs = append(pairs, name, values[0])
		}
	}
	return all{
		inside(`div class="lead"`, append(all{title("Let a program act for you?")}, who...)...),
		hint("If you did not just ask a program to connect to this node, refuse."),
		refusedOf(in.sent, op, "connect"),
		posted("card form", "connect", protocol.OAuthAuthorizePath, pairs, once(), ask(op, in.sent, "connect", shown,
			choose("handle", "For##which profile", ofProfiles(in.handles, english("Every profile of the account"))).chosen(),
			several("scopes", "What it may do", given), choose("expiresInDays", "For how long", daysToAsk)), sendRow("Allow")),
		inside("p", linkAs(`class="quiet"`, p.Refusal, "Refuse, and go back to the program")),
	}
}

// askedOrAccount is where a browser goes that has signed in.
func askedOrAccount(r *http.Request) string {
	if to := asked(r); to != "" {
		return to
	}
	return "/account"
}
