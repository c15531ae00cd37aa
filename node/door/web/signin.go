package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Accounts is what signing in needs beyond the operations. What begins a session returns the secret
// for its cookie.
type Accounts interface {
	// ByTicket spends the ticket of a sign-in link, ByCode a recovery code.
	ByTicket(ctx context.Context, b session.Browser, ticket string) (cookie string, err error)
	ByCode(ctx context.Context, b session.Browser, code string) (cookie string, err error)
	// ByPasskey checks a signature over a challenge of Challenge.
	ByPasskey(ctx context.Context, b session.Browser, a passkey.Assertion) (cookie string, err error)
	// ByEthereum checks a signature over a text such as that of EthereumMessage. handle names a profile
	// of the account, "" where there is only one.
	ByEthereum(ctx context.Context, b session.Browser, text, signature, handle string) (cookie string, err error)
	Challenge(b session.Browser) string
	EthereumMessage(b session.Browser, account string, chain uint64) (string, error)
	// AskLink sends a sign-in link to an address, if it belongs to an account, in a language by its code.
	AskLink(ctx context.Context, mail, language string) error
	// Registrations says who may join, Invites how many others an owner may invite. AskJoin sends a code to who wants to, and returns the
	// secret of the browser; ConfirmJoin makes account and profile, by the code or, without one, by the secret of the letter;
	// JoinByPasskey both without an address.
	Registrations() protocol.Registrations
	Invites() int
	AskJoin(ctx context.Context, network string, in protocol.NewMember, mail, language string) (secret string, err error)
	ConfirmJoin(ctx context.Context, b session.Browser, secret, code, handle string) (cookie, made string, err error)
	JoinByPasskey(ctx context.Context, b session.Browser, in protocol.NewMember) (cookie string, err error)
	// JoinByEthereum is JoinByPasskey for who signed a text of EthereumMessage, which signs in from then on.
	JoinByEthereum(ctx context.Context, b session.Browser, in protocol.NewMember, text, signature string) (cookie string, err error)
	FreeHandle(ctx context.Context, handle string) error
	// OperatorOptions is what a browser makes the passkey of the first operator with, an error where the ticket makes none; BecomeOperator
	// spends the ticket. The passkey is not asked for where the node's address has none.
	OperatorOptions(ctx context.Context, ticket, name string) (protocol.PasskeyOptions, error)
	BecomeOperator(ctx context.Context, b session.Browser, ticket, account string, in protocol.NewPasskey) (cookie string, err error)
	// SendsMail reports whether the node sends mail at all.
	SendsMail() bool
	// LogsMail reports whether letters are only written to the node's log.
	LogsMail() bool
	// PasskeyDomain is the domain name that passkeys are for, "" where the node's address has none.
	PasskeyDomain() string
	// Chains are the chains whose identities' owners sign in; none where the node reads no chain.
	Chains() []uint64
}

// signingIn is what the page to sign in shows.
type signingIn struct {
	ticket  string // of a sign-in link
	refused string // why the last attempt failed
	ended   bool   // the session of this browser has ended
	closed  bool   // since the account was closed
	again   bool   // this browser is signed in, and what it wants needs a recent sign-in
	several bool   // the Ethereum account owns identities of several accounts
	to      string // where to go afterwards, "" for the account
	typed   url.Values
}

// destination is the form of a page to go to after the sign-in, also of one that a letter or notice leads to.
var destination = regexp.MustCompile(`^/account[A-Za-z0-9/_-]{0,100}(\?[A-Za-z0-9=&._-]{1,200})?$`)

// destined returns the page to go to, "" for one that is no page of an account.
func destined(to string) string {
	if !destination.MatchString(to) || strings.Contains(to, "//") {
		return ""
	}
	return to
}

// toSignIn leads to the page to sign in, and from there back to the page of the request.
func toSignIn(w http.ResponseWriter, r *http.Request) {
	at := "/sign-in"
	if to := destined(r.URL.RequestURI()); r.Method == http.MethodGet && to != "" && to != "/account" {
		at += "?to=" + url.QueryEscape(to)
	}
	redirect(w, r, at)
}

func (s *Web) writeSignIn(w http.ResponseWriter, r *http.Request, status int, in signingIn) {
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Sign in"), Path: "/sign-in", SignIn: true, Body: signInBody(s, in)})
}

// signInPage shows the ways to sign in, or the page of a sign-in link. It does not spend the link,
// because link previews open it too.
func (s *Web) signInPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	in := signingIn{ticket: q.Get("ticket"), to: destined(q.Get("to"))}
	if in.ticket == "" && session.OfReader(r, s.Base) != "" {
		state, err := s.state(r)
		in.again = q.Has("again") && state.SignedIn
		in.closed = q.Has("closed")
		switch signedIn := err == nil && state.SignedIn && !in.again; {
		case signedIn && in.closed: // what waits is settled first
			redirect(w, r, "/account/close")
			return
		case signedIn:
			redirect(w, r, askedOrAccount(r))
			return
		}
		if in.ended = err == nil && !state.SignedIn; in.ended {
			http.SetCookie(w, session.SetMarker(s.Base, false))
		}
	}
	s.writeSignIn(w, r, 0, in)
}

// browser returns what is known of the browser of a request.
func (s *Web) browser(r *http.Request) session.Browser {
	return session.Browser{Program: r.UserAgent(), Former: session.Of(r, s.Base), Bound: session.BoundOf(r, s.Base), Network: s.Network(r),
		Language: words.Of(r.Context()).Code}
}

// signIn begins a session by what the form has, or sends a link.
func (s *Web) signIn(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	if err := s.Table.Limits.Write(s.Network(r)); err != nil {
		s.Fail(w, r, err)
		return
	}
	to := destined(r.PostForm.Get("to"))
	cookie, err := s.begin(r)
	if err != nil {
		e := protocol.AsError(err)
		if e.Code == protocol.Internal {
			s.Fail(w, r, err)
			return
		}
		why := e.Detail
		if len(e.Faults) > 0 {
			why = e.Faults[0].Detail // without its pointer
		}
		several := e.Code == protocol.Conflict && r.PostForm.Has("message") && len(s.Accounts.Chains()) > 0
		s.writeSignIn(w, r, e.Code.Status(), signingIn{refused: why, to: to, typed: r.PostForm, several: several})
		return
	}
	if cookie == "" {
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Check your mail"), Path: "/sign-in", Body: sentBody(s)})
		return
	}
	http.SetCookie(w, session.SetCookie(s.Base, cookie))
	http.SetCookie(w, session.SetMarker(s.Base, true))
	if to == "" {
		to = askedOrAccount(r)
	}
	redirect(w, r, to)
}

// begin begins a session; without a cookie, a link was sent.
func (s *Web) begin(r *http.Request) (cookie string, err error) {
	f, b := r.PostForm, s.browser(r)
	switch {
	case f.Get("passkey") != "":
		return s.Accounts.ByPasskey(r.Context(), b, passkey.Assertion{
			ID: f.Get("passkey"), ClientData: f.Get("clientData"), AuthenticatorData: f.Get("authenticatorData"), Signature: f.Get("signature"), User: f.Get("user"),
		})
	case f.Get("message") != "":
		return s.Accounts.ByEthereum(r.Context(), b, f.Get("message"), f.Get("signature"), f.Get("handle"))
	case f.Get("code") != "":
		return s.Accounts.ByCode(r.Context(), b, f.Get("code"))
	case f.Get("mail") != "" && s.Accounts.SendsMail():
		return "", s.Accounts.AskLink(r.Context(), f.Get("mail"), words.Of(r.Context()).Code)
	}
	return s.Accounts.ByTicket(r.Context(), b, f.Get("ticket"))
}

// signInChallenge gives the script what a passkey, or with the field account an Ethereum account, is
// to sign. Nothing is stored: the challenge is good for the browser that gets its cookie.
func (s *Web) signInChallenge(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Problem(w, err)
		return
	}
	b := s.browser(r)
	if b.Bound == "" {
		b.Bound, _ = session.New(session.Ticket)
	}
	said := map[string]string{}
	if account := r.PostForm.Get("account"); account != "" {
		chain, _ := strconv.ParseUint(r.PostForm.Get("chain"), 10, 64) // 0 is no chain
		message, err := s.Accounts.EthereumMessage(b, account, chain)
		if err != nil {
			s.Problem(w, err)
			return
		}
		said["message"] = message
	} else {
		said["challenge"], said["domain"] = s.Accounts.Challenge(b), s.Accounts.PasskeyDomain()
	}
	raw, err := json.Marshal(said)
	if err != nil {
		s.Problem(w, err)
		return
	}
	http.SetCookie(w, session.SetBound(s.Base, b.Bound))
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, "application/json", raw)
}

// hiddenFields are those that a script fills in, and the address to which a reader returns.
func hiddenFields(to string, names ...string) (fields hiddenPairs) {
	if to != "" {
		fields = hidden("to", to)
	}
	for _, name := range names {
		fields = append(fields, name, "")
	}
	return fields
}
