package node_test

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/session"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// newcomer is what somebody sends who joins.
func newcomer(handle, more string) string {
	return fmt.Sprintf(`{"kind":"business","handle":%q,"name":"Spice House"%s}`, handle, more)
}

// join registers a profile by a proof of work.
func join(h *nodetest.House, handle, more string) nodetest.Answer {
	h.T.Helper()
	return h.Ask("POST", "/api/public/profiles", newcomer(handle, more), "Proof-Of-Work", h.Proof("join"))
}

// joinedBefore makes profiles have joined some time ago.
func joinedBefore(h *nodetest.House, ago time.Duration, handles ...string) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for _, handle := range handles {
			j, err := tx.Joins().Of(ctx, handle)
			require.NoError(h.T, err)
			j.At = tx.Now.Add(-ago)
			require.NoError(h.T, tx.Joins().Put(ctx, j))
		}
		return nil
	}))
}

// lapse runs the job that deletes joins that nobody finished.
func lapse(h *nodetest.House) {
	h.T.Helper()
	_, err := h.Accounts.Lapse(h.T.Context(), storage.Job{})
	require.NoError(h.T, err)
}

// TestJoin_Proof: without identity an agent joins by a proof of work and gets a token, with which it acts; a person claims the
// profile, and both go on to act as it; who never used the token is forgotten, and its handle is free again.
func TestJoin_Proof(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		a := h.Ask("POST", "/api/public/profiles", newcomer("spice-house", ""))
		require.Equal(t, protocol.PowRequired, a.Problem().Code)
		made := nodetest.As[protocol.Member](join(h, "spice-house", `,"headline":"Cardamom"`).Is(201))
		require.Empty(t, made.State, "a node on loopback is open")
		require.NotNil(t, made.Token)
		h.Ask("GET", "/api/public/agents/spice-house", "").Is(200)
		token := []string{"Authorization", "Bearer " + *made.Token}
		h.Ask("POST", "/api/public/board", nodetest.GoodPost, token...).Is(201)

		for handle, code := range map[string]string{"spice-house": "taken", "sp1ce-house": "taken", "admin": "reserved", "adm1n": "reserved", "jo-in": "reserved"} {
			p := h.Ask("POST", "/api/public/profiles", newcomer(handle, "")).Problem()
			require.Equal(t, protocol.Validation, p.Code, "before any proof is asked for")
			require.Equal(t, "/handle", p.Errors[0].Pointer)
			require.Equal(t, code, p.Errors[0].Code, handle)
			if code == "taken" {
				require.Contains(t, p.Errors[0].Detail, "spice-house")
				require.Contains(t, p.Errors[0].Detail, "free are @")
			}
		}

		person, link := h.OpenAccount("Meera", protocol.RoleOwner, "meera@example.org")
		cookie := "stoa_session=" + h.SignIn(link)
		claims := "/api/owner/claims/" + path.Base(*made.ClaimURL)
		h.Ask("GET", claims, "").Is(401)
		read := nodetest.As[protocol.Claim](h.Ask("GET", claims, "", "Authorization", "Bearer "+h.AccountToken(person.ID, "t", protocol.ScopeAccount)).Is(200))
		require.Equal(t, "spice-house", read.Handle)
		h.Ask("POST", claims, "", "Cookie", cookie, "Origin", h.Base, "Sec-Fetch-Site", "same-origin").Is(201)
		require.Equal(t, 410, h.Ask("POST", claims, "", "Cookie", cookie, "Origin", h.Base, "Sec-Fetch-Site", "same-origin").Code, "once")
		h.Ask("POST", "/api/public/board", nodetest.GoodPost, token...).Is(201)
		got := nodetest.As[protocol.Holders](h.Ask("GET", "/api/owner/holders", "", token...).Is(200))
		require.True(t, got.Account)
		require.Equal(t, 1, got.Tokens)
		require.NotNil(t, got.ClaimedAt)
		require.Equal(t, protocol.Conflict, h.Ask("DELETE", "/api/owner/claim", "", token...).Problem().Code, "nobody could act as it afterwards")

		unused := nodetest.As[protocol.Member](join(h, "left-alone", "").Is(201))
		joinedBefore(h, protocol.JoinLapse+time.Minute, "left-alone")
		lapse(h)
		h.Ask("GET", "/api/public/agents/left-alone", "").Is(404)
		h.Ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+*unused.Token).Is(401)
		join(h, "left-alone", "").Is(201)
		require.NoError(t, h.DB.Check(t.Context()))
	})
}

// TestJoin_Directory: the keys of a key directory act as the profile that it registered, and end a claim within a week.
func TestJoin_Directory(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		bot, next := nodetest.NewPair(t), nodetest.NewPair(t)
		h.Table.Gate.Directories = oneDirectory{bot, "Bot"}
		made := nodetest.As[protocol.Member](directed(h, bot, "POST", "/api/public/profiles", newcomer("spice-house", "")).Is(201))
		require.Nil(t, made.Token)
		require.Equal(t, 409, directed(h, bot, "POST", "/api/public/profiles", newcomer("another", "")).Code)
		directed(h, bot, "PUT", "/api/owner/profile", `{"handle":"spice-house","name":"Spice House","kind":"business","headline":"By its key"}`).Is(200)
		p := nodetest.As[protocol.Post](directed(h, bot, "POST", "/api/public/board", nodetest.GoodPost).Is(201))
		require.Equal(t, []any{"spice-house", "Spice House", true, protocol.ByDirectory},
			[]any{*p.Author.Handle, p.Author.Name, p.Author.Verified, p.Author.Proof.Level})

		h.Table.Gate.Directories = oneDirectory{next, "Bot"} // the directory has another key now
		directed(h, next, "GET", "/api/owner/profile", "").Is(200)

		person, link := h.OpenAccount("Meera", protocol.RoleOwner, "meera@example.org")
		cookie := []string{"Cookie", "stoa_session=" + h.SignIn(link), "Origin", h.Base, "Sec-Fetch-Site", "same-origin"}
		h.Ask("POST", "/api/owner/claims/"+path.Base(*made.ClaimURL), "", cookie...).Is(201)
		account := "Bearer " + h.AccountToken(person.ID, "t", protocol.ScopeProfile, protocol.ScopeKeys)
		directed(h, next, "PUT", "/api/owner/profile", `{"handle":"spice-house","name":"Spice House","kind":"business","headline":"Both act"}`).Is(200)
		require.Equal(t, "https://bot.example", *nodetest.As[protocol.Holders](h.Ask("GET", "/api/owner/holders", "", "Authorization", account).Is(200)).Directory)
		directed(h, next, "DELETE", "/api/owner/claim", "").Is(200)
		h.Ask("GET", "/api/owner/profile?handle=spice-house", "", "Authorization", account).Is(403)

		again := nodetest.As[protocol.NewClaim](directed(h, next, "POST", "/api/owner/claim-link", "{}").Is(201))
		h.Ask("POST", "/api/owner/claims/"+path.Base(*made.ClaimURL), "", cookie...).Is(410)
		h.Ask("POST", "/api/owner/claims/"+path.Base(again.ClaimURL), "", cookie...).Is(201)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			j, err := tx.Joins().Of(ctx, "spice-house")
			require.NoError(t, err)
			j.ClaimedAt = new(tx.Now.Add(-protocol.ReleaseWithin - time.Hour))
			return tx.Joins().Put(ctx, j)
		}))
		require.Equal(t, protocol.Forbidden, directed(h, next, "DELETE", "/api/owner/claim", "").Problem().Code, "after a week only the account")
		h.Ask("DELETE", "/api/owner/identity?handle=spice-house", "", "Authorization", account).Is(204)
		require.Equal(t, 403, directed(h, next, "GET", "/api/owner/profile", "").Code, "the account ended the agent's part")
	})
}

// TestJoin_Chain: a chain identity makes a profile that it acts as; sold, the profile is hidden, and never the buyer's.
func TestJoin_Chain(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "")
	s.Watch()
	a, pair := &actor{s: s}, nodetest.NewPair(t)
	var err error
	a.id, _, err = s.Chain.Registrar(0).Register(t.Context(), "https://agent.example/spice-house")
	require.NoError(t, err)
	s.Chain.Publish(0, 0, a.id, pair)
	s.Chain.Do("final")
	a.grants(pair, "")
	a.signs(pair, "POST", "/api/public/profiles", newcomer("spice-house", "")).Is(201)
	p := nodetest.As[protocol.Profile](s.Ask("GET", "/api/public/agents/spice-house", "").Is(200))
	require.Equal(t, a.id.String(), *p.Identity.ERC8004)
	s.Ask("GET", (*p.Identity.Registration)[len(s.Base):], "").Is(200)
	require.Equal(t, 200, a.signs(pair, "PUT", "/api/owner/profile", `{"handle":"spice-house","name":"Spice House","kind":"business","headline":"On chain"}`).Code)
	require.Equal(t, 409, a.signs(pair, "POST", "/api/public/profiles", newcomer("another", "")).Code)

	s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
	buyers := nodetest.NewPair(t)
	s.Chain.Publish(1, 1, a.id, buyers)
	s.Chain.Do("final")
	require.Eventually(t, func() bool { return s.Ask("GET", "/api/public/agents/spice-house", "").Code == 404 }, time.Minute, 50*time.Millisecond)
	a.grants(buyers, "")
	require.Equal(t, 403, a.signs(buyers, "GET", "/api/owner/profile", "").Code, "it is not the buyer's")
	require.Equal(t, "taken", a.signs(buyers, "POST", "/api/public/profiles", newcomer("spice-house", "")).Problem().Errors[0].Code)
	require.Equal(t, 201, a.signs(buyers, "POST", "/api/public/profiles", newcomer("buyers-house", "")).Code)
}

// TestJoin_Approval: a profile that waits is its owner's alone; an operator shows it or says why not.
func TestJoin_Approval(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.Registrations = "approval" })
		operator := h.Operator()
		first := nodetest.As[protocol.Member](join(h, "spice-house", "").Is(201))
		second := nodetest.As[protocol.Member](join(h, "tea-house", "").Is(201))
		require.Equal(t, protocol.ProfilePending, first.State)
		token := []string{"Authorization", "Bearer " + *first.Token}
		h.Ask("GET", "/api/public/agents/spice-house", "").Is(404)
		h.Ask("PUT", "/api/owner/profile", `{"handle":"spice-house","name":"Spice House","kind":"business","headline":"Edited while it waits"}`, token...).Is(200)
		require.Equal(t, 403, h.Ask("POST", "/api/public/board", nodetest.GoodPost, token...).Code)

		var waiting protocol.Page[protocol.Joining]
		operator.Do(200, "GET", "/api/operator/joining", nil, &waiting)
		require.Len(t, waiting.Items, 2)
		require.Equal(t, "Edited while it waits", waiting.Items[0].Headline)
		operator.Do(422, "POST", "/api/operator/joining/tea-house", map[string]any{"decision": "refuse"}, nil)
		operator.Do(204, "POST", "/api/operator/joining/tea-house", map[string]any{"decision": "refuse", "reason": "We list shops of the town only."}, nil)
		operator.Do(204, "POST", "/api/operator/joining/spice-house", map[string]any{"decision": "approve"}, nil)
		operator.Do(409, "POST", "/api/operator/joining/spice-house", map[string]any{"decision": "approve"}, nil)
		h.Ask("GET", "/api/public/agents/spice-house", "").Is(200)
		h.Ask("POST", "/api/public/board", nodetest.GoodPost, token...).Is(201)
		told := nodetest.As[protocol.Holders](h.Ask("GET", "/api/owner/holders", "", "Authorization", "Bearer "+*second.Token).Is(200))
		require.Equal(t, protocol.ProfileRefused, told.State)
		require.Equal(t, "We list shops of the town only.", told.Reason)

		invitation := nodetest.As[protocol.Invited](h.Ask("POST", "/api/owner/invitations", `{}`,
			"Authorization", "Bearer "+h.AccountToken(operator.Account, "i", protocol.ScopeAccount)).Is(201))
		guest := nodetest.As[protocol.Member](join(h, "guest-house", `,"invitation":"`+invitation.Code+`"`).Is(201))
		require.Empty(t, guest.State, "who was invited needs no approval")
		require.Equal(t, "/invitation", join(h, "second-guest", `,"invitation":"`+invitation.Code+`"`).Problem().Errors[0].Pointer)
	})
}

// TestJoin_Closed: the policies, and what they say.
func TestJoin_Closed(t *testing.T) {
	t.Parallel()
	for policy, says := range map[string]string{"closed": "nobody joins this node by himself", "invite": "by invitation"} {
		h := nodetest.New(t, func(c *node.Config) { c.Registrations = policy; c.OwnerInvitations = 1 })
		a := h.Ask("POST", "/api/public/profiles", newcomer("spice-house", ""))
		require.Equal(t, protocol.Forbidden, a.Problem().Code, "before any proof is asked for")
		require.Contains(t, a.Body.String(), says)
		acc, _ := h.OpenAccount("Meera", protocol.RoleOwner, "")
		bearer := []string{"Authorization", "Bearer " + h.AccountToken(acc.ID, "i", protocol.ScopeAccount, protocol.ScopeProfile)}
		invited := h.Ask("POST", "/api/owner/invitations", `{}`, bearer...)
		if policy == "closed" {
			invited.Is(409)
			continue
		}
		h.Ask("POST", "/api/owner/invitations", `{}`, bearer...).Is(403)
		join(h, "spice-house", `,"invitation":"`+nodetest.As[protocol.Invited](invited.Is(201)).Code+`"`).Is(201)
	}
}

// joinCode is the code in a letter that confirms a mailbox.
var joinCode = regexp.MustCompile(`\b[0-9]{6}\b`)

// asksByMail asks for a profile as the page does, and returns what the code of the letter is for.
func asksByMail(h *nodetest.House, handle, mail, language string) (secret string, err error) {
	in := protocol.NewMember{JoinDraft: protocol.JoinDraft{Kind: protocol.Business, Handle: handle, Name: "Spice House"}}
	err = h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		secret, err = h.Accounts.AskJoin(ctx, tx, protocol.Caller{Network: "net"}, in, mail, language)
		return err
	})
	return secret, err
}

// TestJoin_Mail: an address is confirmed by a code or a link; five wrong codes end it; what is answered is the same for an address that has an account.
func TestJoin_Mail(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Work()
		h.OpenAccount("Meera", protocol.RoleOwner, "meera@example.org")
		ask := func(handle, mail, language string) (string, error) { return asksByMail(h, handle, mail, language) }
		link := regexp.MustCompile(`/join/confirm\?ticket=(\S+)`)
		confirm := func(secret, code string) error {
			_, _, err := h.Accounts.ConfirmJoin(t.Context(), session.Browser{Program: "Browser"}, secret, code, "")
			return err
		}
		exists := func(handle string) bool { return h.Ask("GET", "/api/public/agents/"+handle, "").Code == 200 }

		secret, err := ask("spice-house", "asha@example.org", "hi")
		require.NoError(t, err)
		l := box.Next(t, h)
		require.Equal(t, "asha@example.org", l.To)
		require.Contains(t, l.Text, "शामिल होने का", "in the language of the page")
		require.False(t, exists("spice-house"), "nothing is made before the address is confirmed")
		require.Equal(t, protocol.Validation, protocol.CodeOf(confirm(secret, "000000x")))
		require.NoError(t, confirm(secret, joinCode.FindString(l.Subject)))
		require.True(t, exists("spice-house"))
		require.Equal(t, protocol.Gone, protocol.CodeOf(confirm(secret, joinCode.FindString(l.Subject))), "once")

		_, err = ask("tea-house", "meera@example.org", "en") // has an account: answer and letter are the same
		require.NoError(t, err)
		require.NoError(t, confirm(link.FindStringSubmatch(box.Next(t, h).Text)[1], ""))
		require.True(t, exists("tea-house"))

		secret, err = ask("oil-house", "ravi@example.org", "en")
		require.NoError(t, err)
		right := joinCode.FindString(box.Next(t, h).Subject)
		for range protocol.JoinCodeTries {
			require.Equal(t, protocol.Validation, protocol.CodeOf(confirm(secret, "wrong")))
		}
		require.Equal(t, protocol.Gone, protocol.CodeOf(confirm(secret, right)), "the right one after five wrong ones")
		for range 2 {
			_, err = ask("oil-house", "ravi@example.org", "en")
			require.NoError(t, err)
			box.Next(t, h)
		}
		_, err = ask("oil-house", "ravi@example.org", "en")
		require.Equal(t, protocol.RateLimited, protocol.CodeOf(err), "a fourth letter within ten minutes")
	})
}

// TestJoin_Bounds: what one network and what all strangers may begin in a day is bounded, and others still join and sign in.
func TestJoin_Bounds(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		h.Accounts.Joining.PerNetwork, h.Accounts.Joining.PerDay = 3, 20
		_, link := h.OpenAccount("Meera", protocol.RoleOwner, "")
		try := func(network, n int) protocol.Code {
			a := h.From(fmt.Sprintf("198.51.%d.7", network), "POST", "/api/public/profiles",
				newcomer(fmt.Sprintf("shop-%d-%d", network, n), ""), "Proof-Of-Work", h.Proof("join"))
			if a.Code == 201 {
				return ""
			}
			return a.Problem().Code
		}
		for n := range 3 {
			require.Empty(t, try(0, n))
		}
		require.Equal(t, protocol.RateLimited, try(0, 3))
		made := 3
		for network := 1; network <= 20; network++ {
			if try(network, 0) == "" {
				made++
			}
		}
		require.Equal(t, 10, made, "half of the day's are for callers who are known")
		require.NotEmpty(t, h.SignIn(link), "signing in goes on")
		bot := nodetest.NewPair(t)
		h.Table.Gate.Directories = oneDirectory{bot, "Bot"}
		directed(h, bot, "POST", "/api/public/profiles", newcomer("known-shop", "")).Is(201)
	})
}

// TestJoin_Scope: an account makes one more profile, by a token with the scope account and by no other.
func TestJoin_Scope(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	acc, _ := h.OpenAccount("Meera", protocol.RoleOwner, "")
	for scope, status := range map[protocol.Scope]int{protocol.ScopePost: 403, protocol.ScopeProfile: 403, protocol.ScopeAccount: 201} {
		h.Ask("POST", "/api/public/profiles", newcomer("shop-"+string(scope), ""), "Authorization", "Bearer "+h.AccountToken(acc.ID, "t", scope)).Is(status)
	}
}

// TestJoin_Import: an owner brings a profile from elsewhere under the rules of those who join.
func TestJoin_Import(t *testing.T) {
	t.Parallel()
	one := nodetest.NewMover(t)
	var raw []byte
	require.NoError(t, one.Call(protocol.ExportArchive.Operation, map[string]any{"handle": "home"}, nil, &raw))
	here := nodetest.NewMover(t, func(c *node.Config) { c.Registrations = "approval" })
	here.Hosted("gone")
	require.NoError(t, here.Admin().Operate(t.Context(), protocol.DropProfile.Operation, protocol.HandleInput{Handle: "gone"}, nil))
	for _, handle := range []string{"adm1n", "h0me", "gone"} {
		for _, dry := range []bool{true, false} {
			_, err := here.Imports(raw, map[string]any{"as": handle, "dryRun": dry})
			require.Equal(t, protocol.Validation, protocol.CodeOf(err), "%s: %v", handle, err)
		}
	}
	report, err := here.Imports(raw, map[string]any{"as": "newcomer"})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(report.Notes), "waits for an operator")
	here.Ask("GET", "/api/public/agents/newcomer", "").Is(404)
	here.Operator().Do(204, "POST", "/api/operator/joining/newcomer", map[string]any{"decision": "approve"}, nil)
	here.Ask("GET", "/api/public/agents/newcomer", "").Is(200)
	require.True(t, nodetest.As[struct{ OpenRegistrations bool }](here.Ask("GET", "/nodeinfo/2.1", "")).OpenRegistrations)
}

// TestJoin_Once: who confirms a mailbox is counted when it is asked, and not again.
func TestJoin_Once(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	h.Accounts.Joining.PerNetwork = 1
	secret, err := asksByMail(h, "asha-rao", "asha@example.org", "en")
	require.NoError(t, err)
	code := joinCode.FindString(box.Next(t, h).Subject)
	_, _, err = h.Accounts.ConfirmJoin(t.Context(), session.Browser{Network: "net"}, secret, code, "")
	require.NoError(t, err)
	_, err = asksByMail(h, "ravi-rao", "ravi@example.org", "en")
	require.Equal(t, protocol.RateLimited, protocol.CodeOf(err))
}
