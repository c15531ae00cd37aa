package web

import (
	"context"

	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

const (
	maxForm       = 64 << 10 // bytes of a form: percent-encoded, a profile in a script with three bytes per letter takes 16 KiB
	maxTokenPages = 20       // pages of tokens in which the account page looks for valid ones
)

// accountRoutes returns the routes of signing in and of the account. Their pages are for one
// reader: they are not cached and not in the site map.
func (s *Web) accountRoutes() []Route {
	routes := []Route{
		{Pattern: "/sign-in", Handler: http.HandlerFunc(s.signInPage)},
		s.forms("/sign-in", s.signIn),
		s.forms("/sign-in/challenge", s.signInChallenge),
		s.forms("/sign-out", s.signOut),
		{Pattern: protocol.OAuthAuthorizePath, Handler: http.HandlerFunc(s.connectPage)},
		s.forms(protocol.OAuthAuthorizePath, s.connectForm, protocol.GrantClient.Operation),
		s.forms(walletPath, s.walletStep),
		{Pattern: "/account/threads", Handler: http.HandlerFunc(s.inboxPage)},
		{Pattern: "/account/threads/:id", Handler: http.HandlerFunc(s.inboxThread)},
		s.forms("/account/threads/:id", s.inboxForm, inboxForms...),
		{Pattern: "/account/attention/money/:of", Handler: http.HandlerFunc(s.ownMoneyPage)},
		{Pattern: "/account/attention/payments.csv", Handler: http.HandlerFunc(s.paymentsFile)},
		s.forms("/account/data", s.importForm, protocol.ImportArchive.Operation),
		s.forms(importItemsPath, s.importItemsForm, protocol.ImportItems.Operation),
		s.forms(ownPicturePath, s.putPicture, protocol.PutPicture.Operation),
		{Pattern: "/account/items/sample.csv", Handler: http.HandlerFunc(sampleItems)},
		{Pattern: "/account/items.csv", Handler: http.HandlerFunc(s.itemsFile)},
	}
	forms := map[string][]*protocol.Operation{}
	for _, p := range accountPages {
		forms[p.sentTo()] = append(forms[p.sentTo()], p.forms...)
		if p.body != nil {
			routes = append(routes, Route{Pattern: p.path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.showAccount(w, r, &account{Page: p, Done: doneWords[r.URL.Query().Get("done")]})
			})})
		}
	}
	for path, ops := range forms {
		routes = append(routes, s.forms(path, s.accountForm, ops...))
	}
	return slices.Concat(routes, s.joinRoutes(), s.firstOperatorRoutes(), s.confirmRoutes(), s.operatorRoutes())
}

// forms returns the route to which forms are sent that do some operations.
func (s *Web) forms(pattern string, do http.HandlerFunc, ops ...*protocol.Operation) Route {
	return Route{Pattern: pattern, Method: http.MethodPost, Handler: s.guarded(do), Forms: ops}
}

// guarded refuses forms that pages of other sites send.
func (s *Web) guarded(do http.HandlerFunc) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Fail(w, r, protocol.Errorf(protocol.Forbidden, "this form was not sent by a page of this node; nothing was done"))
	}))
	return protection.Handler(do)
}

// writePrivate writes a page that is only for this reader.
func (s *Web) writePrivate(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Private = true
	v.Status = status
	if strings.HasPrefix(v.Path, "/account") {
		v.Owner = s.ownerNav(r, v.Path, v.Of)
	}
	v.Request = w.Header().Get(requestID)
	if s.Accounts != nil && session.OfReader(r, s.Base) != "" {
		if state, err := s.state(r); err == nil && state.SignedIn {
			v.Who = *state.Name
			var waits protocol.OwnerWaits
			if err := s.invokeSignedIn(r, protocol.ListWaiting.Operation, protocol.None{}, &waits); err == nil {
				v.Waits = waits.Count
			}
			if _, err := r.Cookie(session.MarkerName); err != nil { // a session of an older version
				http.SetCookie(w, session.SetMarker(s.Base, true))
			}
		}
	}
	s.write(w, r, v)
}

func redirect(w http.ResponseWriter, r *http.Request, to string) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head["Content-Type"] = nil // the redirect has no body
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// parseForm reads a posted form within its bounds.
func (s *Web) parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "the form cannot be read, or is longer than %d bytes", maxForm)
	}
	for _, values := range r.PostForm { // browsers send CR LF for a line break, which counts as one character when typing (HTML §4.10.21.4)
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
			if strings.TrimSpace(values[i]) == "" { // nobody sees the spaces in such a field
				values[i] = ""
			}
		}
	}
	return nil
}

// signOut ends the session of this browser.
func (s *Web) signOut(w http.ResponseWriter, r *http.Request) {
	var page protocol.Page[protocol.SignedIn]
	err := s.invokeSignedIn(r, protocol.ListSessions.Operation, map[string]any{"limit": protocol.MaxLimit}, &page)
	for _, x := range page.Items {
		if x.Current {
			err = s.invokeSignedIn(r, protocol.EndSession.Operation, map[string]any{"id": x.ID}, nil)
		}
	}
	if err != nil && protocol.CodeOf(err) != protocol.Unauthorized { // a session that has expired is ended already
		s.Fail(w, r, err)
		return
	}
	http.SetCookie(w, session.SetCookie(s.Base, ""))
	http.SetCookie(w, session.SetMarker(s.Base, false))
	redirect(w, r, "/sign-in")
}

// invokeSignedIn invokes an operation as the signed-in user.
func (s *Web) invokeSignedIn(r *http.Request, op *protocol.Operation, args any, into any) error {
	res, err := s.invokeOwner(r, op, args, "")
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(res.JSON, into)
}

// invokeOwner is invokeSignedIn for an answer that is not JSON, and for a write of what has a version.
func (s *Web) invokeOwner(r *http.Request, op *protocol.Operation, args any, version string) (hall.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return hall.Result{}, err
	}
	secret, key := session.Of(r, s.Base), ""
	if op.ReadOnly {
		secret = session.OfReader(r, s.Base)
	} else if r.PostForm.Get("once") != "" && r.PostForm.Get("do") == op.Name {
		key = formKey(r, op)
	}
	return s.Table.Invoke(r.Context(), hall.Request{
		Op: op.Name, Args: raw, IdempotencyKey: key, IfMatch: version, Door: "page", Evidence: identity.Evidence{Network: s.Network(r), Session: secret},
	})
}

func (s *Web) state(r *http.Request) (state protocol.SessionState, err error) {
	err = s.invokeSignedIn(r, protocol.ServiceSession.Operation, protocol.None{}, &state)
	return state, err
}

// account is what a page of the account shows.
type account struct {
	answers
	Page       accountPage
	Account    protocol.Account
	Index      []indexGroup
	Today      []protocol.Merchant    // the shops of the account, for the index
	Handle     string                 // the profile that the page is about, "" for none
	Report     *protocol.ImportReport // of an import, or of a check of a file
	Imported   *itemsImport
	Picture    ownPicture
	Preview    bool // the refused form is not refused: its profile, or more of its fields, is shown
	Items      *itemsPage
	Undo       *removed // what was removed
	Board      *ownBoard
	Meetings   *ownMeetings
	Feed       *protocol.MeetingFeed // a new one, whose address is shown only once
	Tokens     []protocol.Token
	Made       *protocol.MadeToken    // a new token, whose secret is shown only once
	Invited    *protocol.Invited      // a new invitation, whose link is shown only once
	Codes      []string               // new recovery codes, which are shown only once
	Policy     protocol.Registrations // of the page of invitations
	Sales      *sales                 // of a shop
	More       string                 // path of the next page of a list, "" for none
	Sent       *sent                  // the form that was refused; nil for none
	Done       string                 // what was done
	New        bool                   // the browser is a newcomer's: the page leads back to the first steps
	HasItems   bool
	Ticket     string // of a claim link
	Base       string // address of the node
	Registries []Registry
	QR         func(text, label string) ([]byte, error)
	Code       string // of the link in a letter that asks to confirm an address, "" for none
	Logged     bool   // letters are only written to the node's log
}

// handles returns those of the profiles with such a page.
func (a *account) handles() (all []string) {
	for _, p := range a.Account.Profiles {
		if a.Page.has(p) {
			all = append(all, p.Handle)
		}
	}
	return all
}

// others returns the profiles with such a page, when there are several.
func (a *account) others() (all []protocol.HeldProfile) {
	for _, p := range a.Account.Profiles {
		if a.Page.has(p) {
			all = append(all, p)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// back returns the path of the page as it is stored, without what was typed.
func (a *account) back() string {
	if a.Items != nil {
		return a.Items.back(a)
	}
	return a.Page.to(a.Handle)
}

// missing reports whether the page no longer shows the form that was refused: there is nothing left
// to confirm.
func (a *account) missing() bool {
	told, mail := answer(a, protocol.GetNotify), answer(a, protocol.GetAccountMail)
	f := a.Sent
	switch {
	case f == nil:
		return false
	case f.do == "confirm_account_mail":
		return mail.Asked == nil
	case f.do == "put_account_mail":
		return !mail.MailOffered
	case f.do == "confirm_mail":
		return f.handle != a.Handle || told.Mail == nil || told.MailConfirmed
	}
	return false
}

// showAccount writes a page of the account. When it cannot be read, what was typed or a new token is
// shown without the rest.
func (s *Web) showAccount(w http.ResponseWriter, r *http.Request, a *account) {
	a.Logged, a.Base, a.Registries, a.New, a.QR, a.Policy = s.Accounts.LogsMail(), s.Base, s.Registries, isNew(r), s.QR, s.Accounts.Registrations()
	a.Code = r.URL.Query().Get("code")
	err := s.fillAccount(r, a)
	v := view{Title: tr(r.Context(), a.Page.title), Path: a.Page.path, Of: a.Handle, Helps: a.Page.copies || a.Feed != nil, Uploads: a.Page.uploads,
		SignIn: a.Page.path == securityPath, Push: a.Page.path == noticesPage, Wallet: a.Page.path == walletPath}
	if a.Meetings != nil {
		v.Refresh = a.Meetings.Refresh
	}
	switch {
	case a.Sent != nil && err == nil:
		v.Body = a.Page.body(a)
		s.writePrivate(w, r, a.Sent.status(), v)
	case a.Sent != nil:
		s.refusedPage(w, r, a.Sent)
	case err == nil:
		v.Body = a.Page.body(a)
		s.writePrivate(w, r, 0, v)
	case a.Made != nil:
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Your new token"), Path: a.Page.path, Body: madeBody(a.Made)})
	case a.Codes != nil:
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Your new recovery codes"), Path: a.Page.path, Body: codesBody(a.Codes)})
	case a.Invited != nil:
		s.writePrivate(w, r, 0, view{Title: v.Title, Path: a.Page.path, Helps: true, Body: invitedBody(a.Invited)})
	case a.Feed != nil:
		s.writePrivate(w, r, 0, view{Title: v.Title, Path: a.Page.path, Helps: true, Body: feedBody(a.Feed)})
	case protocol.CodeOf(err) == protocol.Unauthorized:
		toSignIn(w, r)
	default:
		s.Fail(w, r, err)
	}
}

// fillAccount reads what a page shows: of the profile that the address or the refused form names,
// otherwise of the first one of the page's kind.
func (s *Web) fillAccount(r *http.Request, a *account) error {
	if a.answers == nil {
		a.answers = answers{}
	}
	if err := s.invokeSignedIn(r, protocol.GetAccount.Operation, protocol.None{}, &a.Account); err != nil {
		return err
	}
	if !a.Page.own() {
		a.Index = index(a.Account, s.Accounts.Invites())
		return a.fill(s, r)
	}
	asked := r.URL.Query().Get("handle")
	if a.Sent != nil && slices.Contains(a.Account.Handles, a.Sent.handle) {
		asked = a.Sent.handle
	}
	for _, p := range a.Account.Profiles {
		if a.Page.has(p) && (asked == "" || asked == p.Handle) {
			a.Handle = p.Handle
			return a.fill(s, r)
		}
	}
	return protocol.Errorf(protocol.NotFound, "this account has no such profile")
}

// fill reads what the page shows.
func (a *account) fill(s *Web, r *http.Request) error {
	for _, op := range a.Page.shows {
		if err := a.show(s, r, op); err != nil {
			return err
		}
	}
	for _, read := range a.Page.read {
		if err := read(a, s, r); err != nil {
			return err
		}
	}
	return nil
}

// refusedPage writes a page with only the refused form, with what was typed, so that it can be
// sent again.
func (s *Web) refusedPage(w http.ResponseWriter, r *http.Request, f *sent) {
	f.path = r.URL.Path
	for _, name := range []string{"passphrase", "keySecret", "webhookSecrets"} {
		f.values.Del(name)
	}
	ended := f.err.Code == protocol.Unauthorized
	title := tr(r.Context(), f.err.Code.Title())
	if ended {
		title = tr(r.Context(), "You are not signed in any more")
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	body := keptBody(f, title, ended, session.SameOrigin(r, s.Base))
	s.writePrivate(w, r, f.err.Code.Status(), view{Title: title, Path: "/account", SignIn: f.do == protocol.AddPasskey.Name, Body: body})
}

// accountForm executes a form of the account's pages: one of the owner's operations, with the form's
// fields as its input.
func (s *Web) accountForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	name := r.PostForm.Get("do")
	op, a := protocol.Lookup(name), &account{}
	part := r.PostForm.Get("part")
	at := slices.IndexFunc(accountPages, func(p accountPage) bool { return p.does(op, part) && p.sentTo() == r.URL.Path })
	if op == nil || at < 0 {
		s.Fail(w, r, protocol.Errorf(protocol.InvalidRequest, "there is no such form here"))
		return
	}
	a.Page = accountPages[at]
	if part != "" {
		name += "-" + part
	}
	f := newSent(r.PostForm)
	if r.PostForm.Get("preview") != "" || r.PostForm.Get("more") != "" {
		a.Sent, a.Preview = f, true
		s.showAccount(w, r, a)
		return
	}
	if op == protocol.ExportArchive.Operation {
		if err := s.export(w, r, f); err != nil {
			s.refusedAccount(w, r, a, f, err)
		}
		return
	}
	err := s.doAccountForm(r, op, name, f, a)
	if err == nil && op == protocol.CloseAccount.Operation { // who is signed in still is led back from there
		redirect(w, r, "/sign-in?closed=1&to=/account/close")
		return
	}
	if err == nil && a.Made == nil && a.Invited == nil && a.Codes == nil && a.Undo == nil && a.Feed == nil {
		done := shownList(r.PostForm)
		done.Set("done", name)
		if a.Page.own() && f.handle != "" {
			done.Set("handle", f.handle)
		}
		path := strings.Replace(a.Page.path, ":id", f.id, 1)
		if op == protocol.ClaimProfile.Operation {
			path = "/account"
		}
		redirect(w, r, path+"?"+done.Encode())
		return
	}
	if err != nil {
		s.refusedAccount(w, r, a, f, err)
		return
	}
	s.showAccount(w, r, a)
}

// refusedAccount shows the page with the form that was refused.
func (s *Web) refusedAccount(w http.ResponseWriter, r *http.Request, a *account, f *sent, err error) {
	a.Made, a.Invited, a.Codes, a.Undo, a.Feed, a.Report, a.Imported, a.Sent = nil, nil, nil, nil, nil, nil, nil, f
	f.refuse(r.Context(), protocol.AsError(err))
	if protocol.CodeOf(err) == protocol.Unauthorized {
		s.refusedPage(w, r, f)
		return
	}
	s.showAccount(w, r, a)
}

// doAccountForm does what a form is for.
func (s *Web) doAccountForm(r *http.Request, op *protocol.Operation, name string, f *sent, a *account) (err error) {
	if name == "put_item-item" && f.values.Get("sku") == "" {
		return s.addItem(r, f)
	}
	if e, ok := edits[name]; ok {
		switch name {
		case "remove_item-remove":
			if a.Undo, err = s.undoItem(r, f); err != nil {
				return err
			}
		case "put_merchant-reopen":
			a.Undo = undoDays(r.Context(), f.values)
		}
		f.now, err = s.save(r, op, e)
		return err
	}
	args := inputOf(op, f.values)
	switch op {
	case protocol.CreateToken.Operation:
		a.Made = &protocol.MadeToken{}
		return s.invokeSignedIn(r, op, args, a.Made)
	case protocol.CreateInvitation.Operation:
		a.Invited = &protocol.Invited{}
		return s.invokeSignedIn(r, op, args, a.Invited)
	case protocol.MakeMeetingFeed.Operation:
		a.Feed = &protocol.MeetingFeed{}
		return s.invokeSignedIn(r, op, args, a.Feed)
	case protocol.MakeRecoveryCodes.Operation:
		var made protocol.MadeCodes
		err = s.invokeSignedIn(r, op, args, &made)
		a.Codes = made.Codes
		return err
	}
	return s.invokeSignedIn(r, op, args, nil)
}

// fresh says how many threads have new messages.
func fresh(n int) templ.Component {
	if n >= 100 {
		return sayIn(`span class="mark fresh"`, "100 and more new")
	}
	return when(n > 0, sayIn(`span class="mark fresh"`, "%d new", n))
}

func ownProfileBody(a *account) templ.Component {
	body := all{accountHead(a, "What others read about you.")}
	if a.Preview {
		body = append(body, profilePreview(a.Sent))
	}
	return append(body, profileForm(a.sent("put_own_profile", a.Handle, ""), answer(a, protocol.GetOwnProfile)))
}

func offersBody(a *account) templ.Component {
	return all{accountHead(a, "What you can do for others, and what you are looking for."), partSections(a, answer(a, protocol.GetOwnProfile))}
}

// madeBody shows a new token when the account page cannot be read.
func madeBody(t *protocol.MadeToken) templ.Component {
	return all{title("Your new token"), madeNote(*t), ahead("/account", "Your account")}
}

// ahead is a link in a paragraph.
func ahead(path, key string) element {
	return element{"<p>" + openLink("", path), "</a></p>", key, nil}
}

func settingsBody(a *account) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return all{
			accountHead(a, noLabel),
			titled("name", "Name", nameForm(a.sent("put_account", "", ""), a.Account)),
			addressSection(a),
			hint("Account %s, role: %s", code(a.Account.ID), word(ctx, a.Account.Role)),
		}
	})
}

// madeNote shows a new token.
func madeNote(t protocol.MadeToken) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return inside(`div class="done" role="status"`, inside("p", bold("Your new token.", tr(ctx, "Copy it now: it is shown only once."))),
			inside("pre", code(t.Secret)))
	})
}

// changedSince says that something else is stored than the form showed.
func changedSince(back string) templ.Component {
	return inside("p", sayIn("strong", "This was changed in the meantime, perhaps by you in another tab.").spaced(),
		say("Nothing was saved yet. What you typed is kept, and where it differs you see what is stored now. Save again to replace that, or %s.",
			link(back, "drop what you typed")))
}

// accountHead begins a page of the account: where it is, whose it is, and what a form has done. about is a key.
func accountHead(a *account, about string) templ.Component {
	return all{
		crumbs("Breadcrumb", a.crumbs()...),
		inside(`div class="lead"`, inside("h1", sayKey(a.Page.title).spaced(), when(a.Handle != "", in(`span class="of" translate="no"`, "@"+a.Handle))),
			when(about != "", sayIn("p", about))),
		accountNotes(a),
	}
}

// accountNotes say what a form has done, or why it was refused.
func accountNotes(a *account) (notes all) {
	if a.Sent != nil && !a.Preview {
		if notes = append(notes, refusal(a.Sent, a.at(), a.back())); a.missing() {
			notes = append(notes, titled("typed", "What you typed, in a form that your account no longer has",
				sentForm(a.Sent, a.Account.Handles, a.Account.Scopes)))
		}
	}
	return append(notes, done(a.Done),
		when(a.New && a.Done != "" && a.Page.path != startPath, inside(`p class="acts"`, linkAs(`class="button"`, startPath, "Next step"))),
		optional(a.Made, madeNote))
}
