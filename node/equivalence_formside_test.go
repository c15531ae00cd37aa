package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// A formSide is one of two nodes with the same past: by the one's HTTP is done what is done by the other one's forms.
type formSide struct {
	*nodetest.House
	d               *nodetest.Doors
	owner, operator string // cookies
	account         string // id of the owner's account
	day             string // in some days
	strangers       int    // that were made
	routes          []formRoute
	shown           map[string]string // forms that pages had, each with a page
	sent            map[string]bool   // those that were sent
	does            map[string]bool   // routes with the operations of the rows
}

// A formRoute is a route that forms are sent to.
type formRoute struct {
	pattern string
	path    *regexp.Regexp
}

var parameter = regexp.MustCompile(`:\w+`)

func newFormSide(t *testing.T) *formSide {
	h := nodetest.New(t, nodetest.AtLocalhost, func(c *node.Config) { c.OwnerInvitations, c.NoProbes = 10_000, true })
	h.Meeting.Mail = nodetest.NoMeetingMail
	h.OpenBoard("asha", "")
	h.PutProfile([]byte(`{"handle":"bazaar","name":"Bazaar","kind":"business","contactPolicy":` + nodetest.OpenPolicy + `}`))
	acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha", "bazaar")
	s := &formSide{House: h, owner: "stoa_session=" + h.SignIn(link), operator: "stoa_session=" + h.SignInOperator(), account: acc.ID,
		shown: map[string]string{}, sent: map[string]bool{}, does: map[string]bool{}}
	for _, r := range h.Web.Routes() {
		if r.Method == http.MethodPost {
			s.routes = append(s.routes, formRoute{r.Pattern, regexp.MustCompile("^" + parameter.ReplaceAllString(r.Pattern, "[^/]+") + "$")})
		}
	}
	slices.SortStableFunc(s.routes, func(a, b formRoute) int { return strings.Count(a.pattern, ":") - strings.Count(b.pattern, ":") })
	s.d = &nodetest.Doors{T: t, House: h}
	for handle, token := range map[string]*string{"asha": &s.d.Token, "bazaar": &s.d.Shop} {
		*token = h.TokenOf(handle, handle)
	}
	s.good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[30]}`, nil)
	return s
}

// good sends a request of asha that succeeds.
func (s *formSide) good(method, path, body string, into any) {
	s.T.Helper()
	s.d.Good(method, path, body, s.d.Token, into)
}

// signedIn sends a request of the account that succeeds.
func (s *formSide) signedIn(method, path, body string, into any) (a nodetest.Answer) {
	s.T.Helper()
	a = s.Ask(method, path, body, s.who("/account", nil)...)
	require.Less(s.T, a.Code, 300, "%s %s: %s", method, path, a.Body)
	if into != nil {
		a.Into(into)
	}
	return a
}

// who are the headers of who uses a page.
func (s *formSide) who(page string, about map[string]string) []string {
	headers := []string{"Origin", s.Base, "Sec-Fetch-Site", "same-origin"}
	for _, c := range [][2]string{{"/bids/", "stoa_bid=" + about["statusToken"]}, {"/meetings/", "stoa_meeting=" + about["statusToken"]},
		{"/threads/", "stoa_thread=" + about["readToken"]}, {"/account/node", s.operator}, {"/account", s.owner}} {
		if strings.HasPrefix(page, c[0]) {
			return append(headers, "Cookie", c[1])
		}
	}
	return headers
}

// filled puts what a form is about into a path.
func filled(text string, about map[string]string) string {
	for name, value := range about {
		text = strings.ReplaceAll(text, "{"+name+"}", url.PathEscape(value))
	}
	return text
}

// inputTypes are the types of the members of each operation's input.
func inputTypes(h *nodetest.House) map[string]map[string]string {
	types := map[string]map[string]string{}
	for _, op := range protocol.Operations() {
		types[op.Name] = map[string]string{}
		for name, p := range h.Table.Schemas.Resolve(h.Table.Schemas.Of(op.In)).Properties {
			types[op.Name][name] = h.Table.Schemas.Resolve(p).Type
		}
	}
	return types
}

// made makes what the form is about.
func (f formRow) made(s *formSide) map[string]string {
	s.T.Helper()
	about := map[string]string{}
	if f.about != nil {
		about = f.about(s)
	} else {
		args := map[string]any{"handle": "asha"}
		if ofShop(f.op) {
			args["handle"] = "bazaar"
		}
		if id := nodetest.Members(s.d.T, f.op.Example)["id"]; id != nil {
			args["id"] = id
		}
		for name, value := range ownThing(s.d, f.op, args) {
			about[name] = fmt.Sprint(value)
		}
	}
	for name := range f.fields {
		delete(about, name)
	}
	return about
}

// input is what was typed, and what the form is about, as the operation's input over HTTP.
func (f formRow) input(s *formSide, types map[string]string, about, typed map[string]string) map[string]any {
	args := map[string]any{}
	for name, text := range about {
		if types[name] != "" {
			f.put(args, types, name, text)
		}
	}
	for name, text := range typed {
		f.put(args, types, name, text)
	}
	if f.args != nil {
		f.args(s, typed, args)
	}
	return args
}

// put sets the member of the input that a field is.
func (f formRow) put(args map[string]any, types map[string]string, name, text string) {
	member := name
	if to, ok := f.to[name]; ok {
		member = to
	}
	var value any = text
	n, err := strconv.ParseFloat(text, 64)
	switch as := f.as[name]; {
	case member == "": // is for f.args
		return
	case types[member] == "boolean":
		value = text != ""
	case strings.TrimSpace(text) == "": // is left out
		return
	case as != nil:
		if value = as(text); value == nil {
			return
		}
	case types[member] == "array":
		value = listOf(text)
	case (types[member] == "integer" || types[member] == "number") && err == nil:
		value = n
	}
	at, parts := args, strings.Split(member, ".")
	for _, p := range parts[:len(parts)-1] {
		if at[p] == nil {
			at[p] = map[string]any{}
		}
		at = at[p].(map[string]any)
	}
	at[parts[len(parts)-1]] = value
}

// listOf is a field with several values, divided by commas.
func listOf(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// byHTTP sends the input to the operation's route.
func (f formRow) byHTTP(s *formSide, args map[string]any, about map[string]string) nodetest.Answer {
	s.T.Helper()
	path, method, body, headers := f.op.HTTP.Path, f.op.HTTP.Method, "", []string{}
	if strings.HasPrefix(f.page, "/account") {
		headers = s.who(f.page, about)
	}
	for _, name := range httpapi.PathParams(path) {
		value := word(args[name])
		if args[name] == nil {
			value = ""
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
		delete(args, name)
	}
	if (f.op.ReadOnly || method == "DELETE") && f.op.Secret != "" && args[f.op.Secret] != nil {
		headers = append(headers, "Authorization", "Bearer "+word(args[f.op.Secret]))
		delete(args, f.op.Secret)
	}
	if f.op.Access&protocol.Proof != 0 {
		headers = append(headers, "Proof-Of-Work", s.Proof(f.op.Purpose))
	}
	switch {
	case f.op.Upload > 0:
		for _, name := range []string{"archive", "file"} {
			body += word(args[name])
			delete(args, name)
		}
		media, _, _ := strings.Cut(f.op.UploadMedia, ", ")
		headers = append(headers, "Content-Type", media)
	case method == "POST" || method == "PUT":
		raw, err := json.Marshal(args)
		require.NoError(s.T, err)
		return s.Ask(method, path, string(raw), headers...)
	}
	query := url.Values{}
	for name, value := range args {
		query.Set(name, word(value))
	}
	return s.Ask(method, path+"?"+query.Encode(), body, headers...)
}
