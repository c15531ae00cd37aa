package account_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/account"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestAccountMail: an owner's new address takes effect when its code comes back,
// and not before; the former one is told, and links that went there are dead.
func TestAccountMail(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testAccountMail)
}

func testAccountMail(t *testing.T, change func(*node.Config)) {
	h := nodetest.New(t, change)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	h.Hosted("asha")
	acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "old@example.org", "asha")
	_, _, err := h.Admin().OpenAccount(t.Context(), "Ravi", protocol.RoleOwner, "ravi@example.org", nil)
	require.NoError(t, err)
	session := []string{"Cookie", "stoa_session=" + h.SignIn(link)}
	const path = "/api/owner/account/mail"
	get := func() (m protocol.AccountMail) {
		h.Ask("GET", path, "", session...).Into(&m)
		return m
	}
	put := func(mail string) nodetest.Answer { return h.Ask("PUT", path, `{"mail":"`+mail+`"}`, session...) }
	confirm := func(code string) nodetest.Answer {
		return h.Ask("POST", path+"/confirm", `{"code":"`+code+`"}`, session...)
	}

	require.Equal(t, 422, put("no address").Code)
	require.Equal(t, 422, put(`a@example.org\r\nBcc: b@example.org`).Code)
	require.Equal(t, 200, put("New@Example.org").Code)
	m := get()
	require.Equal(t, "old@example.org", *m.Mail, "nothing changes before the code comes back")
	require.Equal(t, "new@example.org", *m.Asked)
	asked := box.Next(t, h)
	require.Equal(t, "new@example.org", asked.To)
	code := nodetest.CodeInMail.FindString(asked.Text)
	require.NotEmpty(t, code)

	// A link that is on its way to the former address.
	h.Ask("POST", "/sign-in", "mail=old@example.org", "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html").Is(200)
	stale := regexp.MustCompile(`http\S*/sign-in\?ticket=[A-Za-z0-9_-]{32}`).FindString(box.Next(t, h).Text)
	require.NotEmpty(t, stale)

	require.Equal(t, 410, confirm("q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6").Code)
	stranger := nodetest.OwnerOf(t, h, "mira")
	require.Equal(t, 410, h.Ask("POST", path+"/confirm", `{"code":"`+code+`"}`, "Authorization", "Bearer "+stranger).Code, "another account's code")
	require.Equal(t, 200, put("other@example.org").Code, "a slip of the pen is mended at once")
	other := nodetest.CodeInMail.FindString(box.Next(t, h).Text)
	require.Equal(t, 410, confirm(code).Code, "what was asked for before is not wanted any more")
	require.Equal(t, 200, put("new@example.org").Code)
	require.Equal(t, 200, confirm(code).Code, "no second letter is needed within the time of the first")
	require.Equal(t, 410, confirm(code).Code, "once")
	require.Equal(t, 410, confirm(other).Code)
	m = get()
	require.Equal(t, "new@example.org", *m.Mail)
	require.Nil(t, m.Asked)
	told := box.Next(t, h)
	require.Equal(t, "old@example.org", told.To)
	require.NotContains(t, told.Text, "new@example.org")
	require.Equal(t, protocol.Gone, protocol.CodeOf(must.Err(h.Begin(stale))), "who reads the former address signs in no more")
	require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", session...).Code, "sessions stay")

	// Nobody learns from asking whose address it is, only who reads it.
	require.Equal(t, 200, put("ravi@example.org").Code)
	require.Equal(t, 409, confirm(nodetest.CodeInMail.FindString(box.Next(t, h).Text)).Code)
	require.Equal(t, "new@example.org", *get().Mail)
	require.Equal(t, 200, put("new@example.org").Code)
	require.Nil(t, get().Asked, "withdrawn")

	require.Equal(t, 200, h.Ask("PUT", path, `{}`, session...).Code)
	require.Nil(t, get().Mail)
	require.Equal(t, "new@example.org", box.Next(t, h).To, "told as well")

	// What a job or the audit log holds is no address.
	require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for _, state := range []storage.JobState{storage.JobWaiting, storage.JobDone, storage.JobDead} {
			jobs := must.Get(tx.Jobs().List(ctx, state, "", 100, ""))(t)
			for _, j := range jobs.Items {
				require.NotContains(t, string(j.Args)+j.LastError, "@example.org", j.Kind)
			}
		}
		return nil
	}))
	var audit protocol.Page[protocol.AuditEntry]
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.ReadAudit.Operation, protocol.AuditQuery{Paging: protocol.Paging{Limit: 100}}, &audit))
	noted := 0
	for _, e := range audit.Items {
		require.NotContains(t, e.Detail, "@example.org")
		if e.Action == "account mail" && e.Subject == acc.ID {
			noted++
		}
	}
	require.Equal(t, 2, noted)
}

// TestAccountMail_Bounds: a token that may less than the account does not move its
// address, codes go to few addresses, and without mail there is nothing to ask for.
func TestAccountMail_Bounds(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	full := h.OwnerToken("asha")
	const path = "/api/owner/account/mail"
	ask := func(bearer, mail string) int {
		return h.Ask("PUT", path, `{"mail":"`+mail+`"}`, "Authorization", "Bearer "+bearer).Code
	}
	h.Accounts.Mail = nil
	require.Equal(t, 409, ask(full, "a@example.org"))
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	every := append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)
	for name, token := range map[string]struct {
		ttl    time.Duration
		scopes []protocol.Scope
		want   int
	}{
		"account alone":       {0, []protocol.Scope{protocol.ScopeAccount}, 403},
		"all but keys":        {0, []protocol.Scope{"account", "post", "profile", "inbox", "notify", "archive"}, 403},
		"everything, for now": {time.Hour, every, 403},
		"everything":          {0, every, 200},
	} {
		secret, _, err := h.Admin().CreateAccountToken(t.Context(), "asha", "t", token.ttl, token.scopes...)
		require.NoError(t, err)
		require.Equal(t, token.want, ask(secret, "a@example.org"), name)
	}
	acc := nodetest.As[protocol.Account](h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+full))
	for _, mail := range []string{"a@example.org", "b@example.org", "c@example.org"} {
		require.Equal(t, 200, ask(full, mail))
		job := storage.Job{ID: 1, Kind: storage.AddressJob, Attempt: 1, Args: []byte(`{"account":"` + acc.ID + `"}`)}
		must.Get(h.Accounts.Jobs()[job.Kind](t.Context(), job))(t)
	}
	require.Equal(t, 429, ask(full, "d@example.org"))
	require.Equal(t, 200, ask(full, "a@example.org"), "its code is still good")
	require.Len(t, box.Letters, 3)
}

// TestLetters_Language: a link that a Hindi page asked for comes in Hindi, and so do the letters to an account whose owner signed
// in on a Hindi page; the settings change that. The letter that confirms an address leads to the form with its code, and no letter
// names an operation.
func TestLetters_Language(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Work()
		h.Hosted("asha")
		h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		hindi := []string{"Accept-Language", "hi", "Accept", "text/html"}
		h.SendForm("/sign-in", url.Values{"mail": {"asha@example.org"}}, hindi...).Is(200)
		asked := box.Next(t, h)
		require.Contains(t, asked.Subject, "में साइन इन करें")
		require.NotRegexp(t, `[a-z]+ [a-z]+`, asked.Subject+asked.Text, "no English words")
		ticket := regexp.MustCompile(`ticket=(\S+)`).FindStringSubmatch(asked.Text)[1]
		in := h.SendForm("/sign-in", url.Values{"ticket": {ticket}}, hindi...).Is(303)
		session := []string{"Cookie", "stoa_session=" + in.Result().Cookies()[0].Value}

		put := func(mail string) account.Letter {
			h.Ask("PUT", "/api/owner/notify", `{"mail":"`+mail+`"}`, session...).Is(200)
			return box.Next(t, h)
		}
		confirm := put("notices@example.org")
		require.Contains(t, confirm.Text, "सूचनाएँ इस पते पर आएँ")
		link := strings.TrimPrefix(regexp.MustCompile(`\S*/account/notices\?\S*`).FindString(confirm.Text), h.Base)
		out := h.Ask("GET", link, "", "Accept", "text/html").Is(303)
		require.Equal(t, "/sign-in?to="+url.QueryEscape(link), out.Header().Get("Location"), "and back after the sign-in")
		page := nodetest.ParsePage(t, link, h.Ask("GET", link, "", append(session, "Accept", "text/html")...).Is(200).Body.String())
		require.Equal(t, nodetest.CodeInMail.FindString(confirm.Text), nodetest.Attr(page.Find("input", "name", "code"), "value"))

		h.Ask("PUT", "/api/owner/account", `{"name":"Asha"}`, session...).Is(200)
		require.Equal(t, "hi", nodetest.As[protocol.Account](h.Ask("GET", "/api/owner/account", "", session...)).Language, "left out, it stays")
		h.Ask("PUT", "/api/owner/account", `{"name":"Asha","language":"en"}`, session...).Is(200)
		english := put("other@example.org")
		require.Contains(t, english.Text, "wants notices to be sent to this address")
		h.Ask("PUT", "/api/owner/account/mail", `{"mail":"new@example.org"}`, session...).Is(200)
		moved := box.Next(t, h)
		require.Contains(t, moved.Text, "/account/settings?code="+nodetest.CodeInMail.FindString(moved.Text))
		for _, l := range []account.Letter{asked, confirm, english, moved} {
			require.NotContains(t, l.Text, "confirm_")
		}
	})
}
