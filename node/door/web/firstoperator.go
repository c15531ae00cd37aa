package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of the link that makes the first operator. To open it spends nothing, because link previews open it too.

// firstOperator is what the form does, in the address of the page that it leads to.
const firstOperator = "first_operator"

// becoming is what the page shows.
type becoming struct {
	ticket, name string
	over         string // why the link makes nobody the operator
	refused      string // why the last attempt failed
}

func (s *Web) firstOperatorRoutes() []Route {
	return []Route{
		{Pattern: "/operator", Handler: http.HandlerFunc(s.firstOperatorPage)},
		s.forms("/operator", s.becomeOperator),
		s.forms("/operator/passkey", s.operatorPasskey),
	}
}

func (s *Web) firstOperatorPage(w http.ResponseWriter, r *http.Request) {
	s.showFirstOperator(w, r, becoming{ticket: r.URL.Query().Get("ticket")}, nil)
}

// showFirstOperator shows the form, or why the link is good for nothing. failed is the error of the last attempt.
func (s *Web) showFirstOperator(w http.ResponseWriter, r *http.Request, in becoming, failed error) {
	_, over := s.Accounts.OperatorOptions(r.Context(), in.ticket, in.name)
	err, status := cmp.Or(over, failed), 0
	if err != nil {
		e := protocol.AsError(err)
		if e.Code == protocol.Internal {
			s.Fail(w, r, err)
			return
		}
		status = e.Code.Status()
		if in.refused = refusalText(r.Context(), e); over != nil {
			in.over = in.refused
		}
	}
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Become the operator"), Path: "/operator", SignIn: true,
		Body: firstOperatorBody(s, in)})
}

// becomeOperator makes the account and leads to the operators' pages.
func (s *Web) becomeOperator(w http.ResponseWriter, r *http.Request) {
	if err := s.firstOperatorForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	f := r.PostForm
	in := protocol.NewPasskey{Name: strings.TrimSpace(f.Get("name")), Credential: f.Get("credential"), ClientData: f.Get("clientData"),
		Attestation: f.Get("attestation"), Transports: strings.FieldsFunc(f.Get("transports"), func(c rune) bool { return c == ',' })}
	next := nodePath + "?done=" + firstOperator
	err := s.validPasskey(&in)
	if s.Accounts.PasskeyDomain() == "" {
		next = securityPath
	}
	cookie := ""
	if err == nil {
		cookie, err = s.Accounts.BecomeOperator(r.Context(), s.browser(r), f.Get("ticket"), f.Get("account"), in)
	}
	if err != nil {
		s.showFirstOperator(w, r, becoming{ticket: f.Get("ticket"), name: f.Get("name")}, err)
		return
	}
	s.begun(w, cookie)
	redirect(w, r, next)
}

// validPasskey checks what was sent as add_passkey does, only the name where the node's address has no passkeys.
func (s *Web) validPasskey(in *protocol.NewPasskey) error {
	if s.Accounts.PasskeyDomain() == "" {
		*in = protocol.NewPasskey{Name: in.Name}
		raw, err := json.Marshal(protocol.AccountDraft{Name: in.Name})
		if err != nil {
			return err
		}
		return s.Table.Valid(protocol.PutAccount.Name, raw)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return s.Table.Valid(protocol.AddPasskey.Name, raw)
}

// operatorPasskey gives the script what it makes the passkey with. Nothing is stored.
func (s *Web) operatorPasskey(w http.ResponseWriter, r *http.Request) {
	var raw []byte
	err := s.firstOperatorForm(w, r)
	if err == nil {
		var o protocol.PasskeyOptions
		if o, err = s.Accounts.OperatorOptions(r.Context(), r.PostForm.Get("ticket"), r.PostForm.Get("name")); err == nil {
			raw, err = json.Marshal(o)
		}
	}
	if err != nil {
		s.Problem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, "application/json", raw)
}

func (s *Web) firstOperatorForm(w http.ResponseWriter, r *http.Request) error {
	if err := s.parseForm(w, r); err != nil {
		return err
	}
	return s.Table.Limits.Write(s.Network(r))
}

func operatorName(in becoming) templ.Component {
	return all{hidden("ticket", in.ticket),
		plainField("Your name; no page shows it to others", "name", "name", "name", "required", "", "maxlength", "60", "autocomplete", "name", "value", in.name)}
}
