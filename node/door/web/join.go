package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/a-h/templ"

	"stoa/identity/session"
	"stoa/node/door/web/words"
	"stoa/protocol"
)

// The page to join, the code that confirms an address, and the first steps of a newcomer.

const (
	startPath  = "/account/start"
	claimPath  = "/account/claim"
	joinCookie = "stoa_join"  // secret of who waits for a code
	newCookie  = "stoa_first" // the browser of a newcomer, whose pages lead back to the first steps
)

// joining is what the pages to join show.
type joining struct {
	policy  protocol.Registrations
	who     string // name of the account that is signed in, "" for none
	sent    *sent  // the form that was refused
	shown   url.Values
	ticket  string // of the link in the letter
	code    string
	refused string // why the code was refused
	retry   bool   // the handle was taken meanwhile
	handle  string
}

func (s *Web) joinRoutes() []Route {
	return []Route{
		{Pattern: "/join", Handler: http.HandlerFunc(s.joinPage)},
		s.forms("/join", s.joinForm, protocol.RegisterProfile.Operation),
		{Pattern: "/join/handle", Handler: http.HandlerFunc(s.freeHandle)},
		{Pattern: "/join/code", Handler: http.HandlerFunc(s.joinCodePage)},
		s.forms("/join/code", s.joinCode),
		{Pattern: "/join/confirm", Handler: http.HandlerFunc(s.joinCodePage)},
		s.forms("/join/confirm", s.joinCode),
		{Pattern: claimPath + "/:ticket", Handler: http.HandlerFunc(s.claimPage)},
	}
}

var profileKinds = [][2]string{{"business", english("A shop or business")}, {"person", english("A person")}}

func joinFields(in joining) []control {
	fields := []control{
		choose("kind", "What are you?", profileKinds), line("name", "Name, as others see it").with("autocomplete", "organization"),
		line("handle", "Address here, such as asha-weaves").of("").upTo(39).with("autocapitalize", "none"),
		line("headline", "What you do, in one line"),
	}
	if in.who == "" {
		fields = append(fields, line("mail", "Your mail address; nobody else sees it").with("autocomplete", "email").with("type", "email"))
	}
	if in.policy != protocol.RegistrationsOpen {
		fields = append(fields, line("invitation", "Code of your invitation, if you have one"))
	}
	return fields
}

func (s *Web) showJoin(w http.ResponseWriter, r *http.Request, in joining) {
	in.policy = s.Accounts.Registrations()
	if state, err := s.state(r); err == nil && state.SignedIn {
		in.who = *state.Name
	}
	s.writePrivate(w, r, in.sent.status(), view{
		Title: tr(r.Context(), "Join"), Path: "/join", Join: true, SignIn: len(s.Accounts.Chains()) > 0, Body: joinBody(s, in),
	})
}

func (s *Web) joinPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.showJoin(w, r, joining{shown: url.Values{"kind": {q.Get("kind")}, "invitation": {q.Get("invitation")}, "handle": {q.Get("handle")}}})
}

// joinForm makes a profile of the account, or asks the mailbox, or begins with a passkey or an Ethereum account.
func (s *Web) joinForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, "/join")
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if f.values.Get("handle") == "" {
		f.values.Set("handle", handleOf(f.values.Get("name")))
	}
	f.values.Set("handle", protocol.CleanHandle(f.values.Get("handle")))
	args := f.args("kind", "name", "handle", "headline", "invitation")
	if language := words.Of(r.Context()).Code; language != "" {
		args["languages"] = []string{language}
	}
	if args["kind"] == string(protocol.Business) {
		args["timezone"] = protocol.DefaultMeetingZone
	}
	if err := s.joinBy(w, r, f, args); err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		s.showJoin(w, r, joining{sent: f, shown: f.values})
	}
}

// joinBy does what the form asks for and leads on.
func (s *Web) joinBy(w http.ResponseWriter, r *http.Request, f *sent, args map[string]any) error {
	if state, err := s.state(r); err == nil && state.SignedIn {
		if err := s.invokeForm(r, protocol.RegisterProfile.Operation, args, nil); err != nil {
			return err
		}
		s.welcome(w, r, "", f.values.Get("handle"))
		return nil
	}
	if err := s.Table.Limits.Write(s.Network(r)); err != nil {
		return err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	var in protocol.NewMember
	if err := s.Table.Valid(protocol.RegisterProfile.Name, raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	if f.values.Get("way") == "passkey" {
		cookie, err := s.Accounts.JoinByPasskey(r.Context(), s.browser(r), in)
		if err != nil {
			return err
		}
		s.begun(w, cookie)
		s.isNewcomer(w)
		redirect(w, r, securityPath)
		return nil
	}
	if f.values.Get("way") == "ethereum" {
		cookie, err := s.Accounts.JoinByEthereum(r.Context(), s.browser(r), in, f.values.Get("message"), f.values.Get("signature"))
		if err != nil {
			return err
		}
		s.welcome(w, r, cookie, in.Handle)
		return nil
	}
	secret, err := s.Accounts.AskJoin(r.Context(), s.Network(r), in, f.values.Get("mail"), words.Of(r.Context()).Code)
	if err != nil {
		return err
	}
	http.SetCookie(w, s.joinSecret(secret))
	redirect(w, r, "/join/code")
	return nil
}

// joinSecret is the cookie of who waits for a code; "" ends it.
func (s *Web) joinSecret(secret string) *http.Cookie {
	c := &http.Cookie{Name: joinCookie, Value: secret, Path: "/join", HttpOnly: true, Secure: strings.HasPrefix(s.Base, "https://"),
		SameSite: http.SameSiteLaxMode, MaxAge: int(protocol.JoinCodeLife.Seconds())}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// begun sets the cookies of a session that began.
func (s *Web) begun(w http.ResponseWriter, cookie string) {
	http.SetCookie(w, session.SetCookie(s.Base, cookie))
	http.SetCookie(w, session.SetMarker(s.Base, true))
}

// isNewcomer has the pages of the account lead back to the first steps, for a day.
func (s *Web) isNewcomer(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: newCookie, Value: "1", Path: "/account", HttpOnly: true, Secure: strings.HasPrefix(s.Base, "https://"),
		SameSite: http.SameSiteLaxMode, MaxAge: 24 * 3600})
}

// welcome leads a newcomer to the first steps.
func (s *Web) welcome(w http.ResponseWriter, r *http.Request, cookie, handle string) {
	if cookie != "" {
		s.begun(w, cookie)
	}
	s.isNewcomer(w)
	redirect(w, r, startPath+"?handle="+url.QueryEscape(handle))
}

func (s *Web) joinCodePage(w http.ResponseWriter, r *http.Request) {
	s.showJoinCode(w, r, 0, joining{ticket: r.URL.Query().Get("ticket")})
}

func (s *Web) showJoinCode(w http.ResponseWriter, r *http.Request, status int, in joining) {
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Check your mail"), Path: "/join", Secret: in.ticket != "", Body: joinCodeBody(s, in)})
}

// joinCode takes the code, or the button of the link.
func (s *Web) joinCode(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	if err == nil {
		err = s.Table.Limits.Write(s.Network(r))
	}
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	in := joining{ticket: r.PostForm.Get("ticket"), code: protocol.FoldDigits(strings.TrimSpace(r.PostForm.Get("code"))),
		handle: protocol.CleanHandle(r.PostForm.Get("handle"))}
	secret := in.ticket
	if c, err := r.Cookie(joinCookie); err == nil && secret == "" {
		secret = c.Value
	} else if in.ticket != "" {
		in.code = ""
	}
	if in.ticket == "" && in.code == "" {
		in.code = "-" // is no code, and no link either
	}
	cookie, handle, err := s.Accounts.ConfirmJoin(r.Context(), s.browser(r), secret, in.code, in.handle)
	if err != nil {
		e := protocol.AsError(err)
		if e.Code == protocol.Internal {
			s.Fail(w, r, err)
			return
		}
		in.refused = refusalText(r.Context(), e)
		in.retry = len(e.Faults) > 0 && e.Faults[0].Pointer == "/handle"
		s.showJoinCode(w, r, e.Code.Status(), in)
		return
	}
	http.SetCookie(w, s.joinSecret(""))
	s.welcome(w, r, cookie, handle)
}

// freeHandle tells the script whether a handle may be taken.
func (s *Web) freeHandle(w http.ResponseWriter, r *http.Request) {
	said := map[string]any{"free": true, "why": ""}
	handle := protocol.CleanHandle(r.URL.Query().Get("handle"))
	if name := r.URL.Query().Get("name"); handle == "" {
		handle = handleOf(name)
	}
	said["handle"] = handle
	if err := s.Accounts.FreeHandle(r.Context(), handle); err != nil {
		e := protocol.AsError(err)
		if e.Code != protocol.Validation {
			s.Problem(w, err)
			return
		}
		said["free"], said["why"] = false, refusalText(r.Context(), e)
	}
	raw, err := json.Marshal(said)
	if err != nil {
		s.Problem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, "application/json", raw)
}

// handleOf makes a handle of a name: its Latin letters and digits, with hyphens between words; "" where too few are left.
func handleOf(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-") && (unicode.IsSpace(c) || c == '-' || c == '&' || c == '.'):
			b.WriteByte('-')
		}
	}
	handle := strings.TrimRight(b.String()[:min(b.Len(), 30)], "-")
	if !protocol.IsHandle(handle) {
		return ""
	}
	return handle
}

// joinedWays are how profiles joined, for the operators.
var joinedWays = map[string]string{
	"page": english("On the page to join"), "account": english("Of an account"), "signed": english("An agent, by its signature"),
	"proof": english("An agent, by a proof of work"),
}

// newcomer is what the page of the first steps shows.
type newcomer struct {
	holders protocol.Holders
	steps   []firstStep
}

type firstStep struct {
	name string // key
	path string
	also string // another way, "" for none
	done bool
}

// readStart reads how far a newcomer is.
func (a *account) readStart(s *Web, r *http.Request) error {
	if err := a.ask(s, r, protocol.GetHolders.Operation, map[string]any{}); err != nil {
		return err
	}
	if answer(a, protocol.GetOwnProfile).Kind != protocol.Business {
		return nil
	}
	if err := a.ask(s, r, protocol.GetMerchantRecord.Operation, map[string]any{}); err != nil {
		return err
	}
	var page protocol.Page[protocol.OwnItem]
	err := s.invokeSignedIn(r, protocol.ListOwnItems.Operation, map[string]any{"handle": a.Handle, "limit": 1}, &page)
	a.HasItems = len(page.Items) > 0
	return err
}

func newcomerOf(a *account) newcomer {
	p := answer(a, protocol.GetOwnProfile)
	at := func(path string) string { return path + "?handle=" + url.QueryEscape(a.Handle) }
	n := newcomer{holders: answer(a, protocol.GetHolders)}
	n.steps = []firstStep{{name: english("Say what you do"), path: at("/account/profile"), done: p.Description != "" || p.Headline != ""}}
	if p.Kind == protocol.Business {
		d := answer(a, protocol.GetMerchantRecord).Record
		n.steps = append(n.steps, firstStep{name: english("Your opening hours"), path: at(hoursPath), done: len(d.Hours) > 0},
			firstStep{name: english("Where your shop is"), path: at("/account/shop"), done: d.Address != nil || d.City != ""},
			firstStep{name: english("Your first item"), path: at(itemsPath) + "&new=1", also: at(importItemsPath), done: a.HasItems})
	} else {
		n.steps = append(n.steps, firstStep{name: english("What you can do"), path: at("/account/offers"), done: len(p.Capabilities) > 0},
			firstStep{name: english("When you can be met"), path: at(meetingsPath + "/settings"),
				done: p.Agent != nil && p.Agent.AcceptingMeetingRequests})
	}
	return n
}

// pageLink is a link to the page of a profile, with its address as people say it.
func pageLink(base, handle string) templ.Component {
	return linkText(`translate="no"`, "/@"+handle, strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://")+"/@"+handle)
}

// isNew reports whether the browser is a newcomer's.
func isNew(r *http.Request) bool {
	_, err := r.Cookie(newCookie)
	return err == nil
}

// claimPage shows what a claim link gives to who is signed in.
func (s *Web) claimPage(w http.ResponseWriter, r *http.Request) {
	a := &account{answers: answers{}, Page: pageAt(claimPath), Ticket: r.PathValue("ticket")}
	if state, err := s.state(r); err != nil || !state.SignedIn {
		redirect(w, r, "/sign-in?to="+url.QueryEscape(claimPath+"/"+a.Ticket))
		return
	}
	err := a.ask(s, r, protocol.ReadClaim.Operation, map[string]any{"ticket": a.Ticket})
	if err != nil && protocol.CodeOf(err) != protocol.Gone && protocol.CodeOf(err) != protocol.Validation {
		s.Fail(w, r, err)
		return
	}
	s.showAccount(w, r, a)
}

func joinLead(policy protocol.Registrations) templ.Component {
	switch policy {
	case protocol.RegistrationsClosed:
		return para("Nobody joins this node by himself. Its operator makes accounts and profiles.")
	case protocol.RegistrationsInvite:
		return para("This node is joined by invitation. Ask an owner of a profile here, or the operator, for one.")
	case protocol.RegistrationsApproval:
		return para("A page of your own for people and their agents: what you do, your hours, what you sell, and how to reach you. " +
			"An operator of this node looks at each newcomer before others see it.")
	}
	return para("A page of your own for people and their agents: what you do, your hours, what you sell, and how to reach you. It takes some minutes.")
}

// joinHandleField asks for another handle than the one that was taken.
func joinHandleField(in joining) templ.Component {
	return plainField("Another address", "handle", "name", "handle", "required", "", "maxlength", "41", "autocapitalize", "none", "spellcheck", "false",
		"value", in.handle)
}
