package node_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// An actor is an agent with an account on the chain, and mostly a profile.
type actor struct {
	s             *nodetest.Stage
	handle        string
	account       int
	id            erc8004.ID
	pair          key.Pair
	token, thread string
	ownPost       string
	addedPair     key.Pair
}

// enrolled makes a profile whose agent is registered by an account and enrolled,
// with a thread that someone wrote, a post by its token and a key that its
// identity added.
func enrolled(s *nodetest.Stage, handle string, account int) *actor {
	s.T.Helper()
	ctx := s.T.Context()
	a := &actor{s: s, handle: handle, account: account}
	a.pair = s.Hosted(handle)
	_, _, err := s.Admin().PutProfile(ctx,
		fmt.Appendf(nil, `{"handle":%q,"name":"Load","kind":"person","contactPolicy":{"anonymous":true,"outsideAgentsWithIdentity":true,`+
			`"kinds":["question"]}}`, handle))
	require.NoError(s.T, err)
	require.NoError(s.T, s.Admin().AddKey(ctx, handle, a.pair, true)) // the node keeps it, so its directory is served
	a.token = s.OwnerToken(handle)
	require.NoError(s.T, s.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Webhook: "https://agent.example/notices",
			Events: []protocol.NoticeEvent{protocol.ThreadBegun}})
	}))
	a.id, _, err = s.Chain.Registrar(account).Register(ctx, "https://agent.example/"+handle)
	require.NoError(s.T, err)
	s.Chain.Publish(account, account, a.id, a.pair)
	err = s.Admin().EnrolIdentity(ctx, handle, a.id.String(), a.pair.Thumbprint())
	require.Equal(s.T, protocol.IdentityUnverified, protocol.CodeOf(err), "not before it is final")
	s.Chain.Do("final")
	require.NoError(s.T, s.Admin().EnrolIdentity(ctx, handle, a.id.String(), a.pair.Thumbprint()))
	a.thread = begun(s.House, handle, `{"kind":"question","message":"Secret for `+handle+`"}`).ThreadID
	p := nodetest.As[protocol.Post](s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+a.token))
	require.Equal(s.T, a.id.String(), *p.Author.ERC8004)
	a.ownPost = p.ID
	a.addedPair = nodetest.NewPair(s.T)
	jwk := must.Get(key.MarshalPublic(a.addedPair.Published()))(s.T)
	a.grants(a.pair, "") // the node's own look may lag a moment
	a.signs(a.pair, "POST", "/api/owner/keys", `{"jwk":`+string(jwk)+`}`).Is(201)
	require.Equal(s.T, 200, s.AskSigned(a.addedPair, "GET", "/api/owner/threads", "").Code)
	a.holds(a.pair)
	return a
}

// signs sends a request that a key signed under the identity.
func (a *actor) signs(pair key.Pair, method, path, body string) nodetest.Answer {
	a.s.T.Helper()
	return patient(func() nodetest.Answer {
		return a.s.AskSigned(pair, method, path, body, "Agent-Identity", a.id.String())
	})
}

func (a *actor) files(pair key.Pair) (registration, jwks int) {
	at := "/.well-known/service-agents/" + pair.Thumbprint()
	return a.s.Ask("GET", at+"/registration.json", "").Code, a.s.Ask("GET", at+"/jwks.json", "").Code
}

func (a *actor) profile() (p protocol.Profile) {
	a.s.Ask("GET", "/api/public/agents/"+a.handle, "").Into(&p)
	return p
}

func (a *actor) post() (p protocol.Post) {
	a.s.T.Helper()
	r := a.s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+a.token).Is(201)
	r.Into(&p)
	return p
}

// vouched reports whether the node proves to readers of the chain that it hosts the
// agent.
func (a *actor) vouched() bool {
	return strings.Contains(a.s.Ask("GET", "/.well-known/agent-registration.json", "").Body.String(),
		fmt.Sprintf(`{"agentId":%s,`, a.id.AgentID))
}

// holds: the profile has the identity, and the key acts as the profile.
func (a *actor) holds(pair key.Pair) {
	t := a.s.T
	t.Helper()
	p := a.profile()
	require.NotNil(t, p.Identity.ERC8004)
	require.Equal(t, a.id.String(), *p.Identity.ERC8004)
	require.Contains(t, *p.Identity.KeyDirectory, pair.Thumbprint())
	registration, _ := a.files(pair)
	require.Equal(t, 200, registration)
	require.True(t, a.vouched())
	require.Equal(t, a.id.String(), *a.post().Author.ERC8004)
	threads := a.signs(pair, "GET", "/api/owner/threads", "").Is(200)
	require.Contains(t, threads.Body.String(), a.thread)
	status := nodetest.As[protocol.IdentityStatus](a.s.Ask("GET", "/api/owner/identity", "", "Authorization", "Bearer "+a.token))
	require.Equal(t, strings.ToLower(a.s.Chain.Accounts[a.account].Address), *status.Owner)
	require.Equal(t, pair.Thumbprint(), *status.KeyID)
	require.Nil(t, status.Ended)
}

// remains: nothing changes while the poller looks several times.
func (a *actor) remains(pair key.Pair) {
	a.s.T.Helper()
	time.Sleep(time.Second)
	a.holds(pair)
}

// parted reports whether the profile has no identity any more. An answer that is refused under load shows none either.
func (a *actor) parted() bool {
	shown := a.s.Ask("GET", "/api/public/agents/"+a.handle, "")
	return shown.Code == 200 && nodetest.As[protocol.Profile](shown).Identity.ERC8004 == nil
}

// ends waits until the enrolment has ended, and looks at everything that ended with it.
func (a *actor) ends(why protocol.EnrolmentEnd, pair key.Pair) {
	t := a.s.T
	t.Helper()
	require.Eventually(t, a.parted, time.Minute, 20*time.Millisecond)
	a.ended(why, pair)
}

func (a *actor) ended(why protocol.EnrolmentEnd, pair key.Pair) {
	t := a.s.T
	t.Helper()
	p := a.profile()
	require.Nil(t, p.Identity.ERC8004)
	require.Nil(t, p.Identity.Registration)
	require.Nil(t, p.Identity.KeyDirectory)
	registration, jwks := a.files(pair)
	require.Equal(t, [2]int{410, 410}, [2]int{registration, jwks})
	require.False(t, a.vouched())
	said := a.post()
	require.Nil(t, said.Author.ERC8004)
	require.Equal(t, a.handle, *said.Author.Handle, "the owner's own token remains")
	require.Equal(t, 200, a.s.Ask("GET", "/api/owner/threads", "", "Authorization", "Bearer "+a.token).Code)
	require.Equal(t, 401, a.s.AskSigned(a.addedPair, "GET", "/api/owner/threads", "").Code, "a key that the identity added")
	require.Equal(t, 401, a.s.AskSigned(pair, "GET", "/api/owner/threads", "").Code, "its own key, without the identity")

	status := nodetest.As[protocol.IdentityStatus](a.s.Ask("GET", "/api/owner/identity", "", "Authorization", "Bearer "+a.token))
	require.Nil(t, status.ERC8004)
	require.Nil(t, status.KeyID)
	require.NotNil(t, status.Ended)
	require.Equal(t, why, status.Ended.Reason)
	require.Equal(t, a.id.String(), status.Ended.ERC8004)
	read := func(fn func(context.Context, *storage.Tx) error) { require.NoError(t, a.s.DB.Read(t.Context(), fn)) }
	read(func(ctx context.Context, tx *storage.Tx) error {
		audit, err := tx.AuditLog().List(ctx, "", "", 100, "")
		told := 0
		for _, e := range audit.Items {
			if e.Action == "identity end" && e.Subject == a.handle {
				told++
			}
		}
		require.Positive(t, told, "the operator is told")
		jobs, err2 := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
		require.NoError(t, err2)
		notices := 0
		for _, j := range jobs.Items {
			if strings.Contains(string(j.Args), `"identity.ended"`) && strings.Contains(string(j.Args), `"handle":"`+a.handle+`"`) {
				notices++
			}
		}
		require.Equal(t, told, notices, "and so is the owner")
		return err
	})
}

// outside: the key speaks for the identity, and has no part in the profile.
func (a *actor) outside(pair key.Pair) {
	t := a.s.T
	t.Helper()
	for _, request := range []string{"GET /api/owner/threads", "GET /api/owner/threads/" + a.thread, "DELETE /api/public/board/" + a.ownPost} {
		method, path, _ := strings.Cut(request, " ")
		got := a.signs(pair, method, path, "")
		require.Contains(t, []int{403, 404}, got.Code, "%s: %s", request, got.Body)
		require.NotContains(t, got.Body.String(), "Secret")
	}
	news := a.signs(pair, "GET", "/api/public/since", "").Is(200)
	require.NotContains(t, news.Body.String(), "Secret")
	require.Equal(t, 200, a.s.Ask("GET", "/api/public/board/"+a.ownPost, "").Code)
	p := nodetest.As[protocol.Post](a.signs(pair, "POST", "/api/public/board", nodetest.GoodPost).Is(201))
	require.True(t, p.Author.Verified)
	require.Equal(t, a.id.String(), *p.Author.ERC8004)
	require.Nil(t, p.Author.Handle)
	require.NotContains(t, p.Author.Name, "Load")
}

// owns tries every operation of owners about the profile with the key, and returns those that are not refused.
func (a *actor) owns(pair key.Pair) (done []string) {
	for _, op := range protocol.OperationsFor(protocol.Owners, protocol.HTTP) {
		if op.Secret != "" || op.Upload > 0 {
			continue
		}
		args, path, body, query := exampleOf(op), op.HTTP.Path, "", url.Values{}
		if _, named := op.In.FieldByName("Handle"); named {
			args["handle"] = a.handle
		}
		for _, name := range httpapi.PathParams(path) {
			value := fmt.Sprint(args[name])
			if name == "threadId" {
				value = a.thread
			}
			path = strings.Replace(path, "{"+name+"}", value, 1)
			delete(args, name)
		}
		if op.HTTP.Method == "POST" || op.HTTP.Method == "PUT" {
			body = string(nodetest.Encoded(args))
		} else {
			for name, v := range args {
				query.Set(name, word(v))
			}
			path += "?" + query.Encode()
		}
		if got := a.signs(pair, op.HTTP.Method, path, body); !slices.Contains([]int{401, 403, 404}, got.Code) {
			done = append(done, fmt.Sprint(op.Name, " ", got.Code, " ", got.Body))
		}
	}
	return done
}

// grants waits until the chain, as the node sees it, answers for the key with a code.
func (a *actor) grants(pair key.Pair, code protocol.Code) {
	a.s.T.Helper()
	var got protocol.Code
	require.Eventually(a.s.T, func() bool {
		r := a.signs(pair, "GET", "/api/public/since", "")
		if got = ""; r.Code != 200 {
			got = r.Problem().Code
		}
		return got == code
	}, time.Minute, 20*time.Millisecond, "%s", &got)
}

// TestEnrolment_Sold: a token is sold and bought back, and at no step is it more
// than the owner and wallet of the moment make it. The rooms of the profile, its bids and meetings stay with the profile and its account.
func TestEnrolment_Sold(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		s.Watch()
		a := enrolled(s, "asha", 0)
		buyers := nodetest.NewPair(t)
		d := &nodetest.Doors{T: t, House: s.House, Token: a.token}
		s.TakeBids("asha")
		live, held := d.NewBid(), d.NewBid()
		d.Good("POST", "/api/owner/bids/"+live.Bid.ID+"/confirm", `{"utr":"`+nodetest.NewUTR()+`"}`, a.token, nil)
		d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true}`, a.token, nil)
		var feed protocol.MeetingFeed
		d.Good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, a.token, &feed)
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
		a.ends(protocol.EndedByOwner, a.pair) // before it is final
		a.grants(a.pair, protocol.KeyUnknown)
		s.Chain.Publish(1, 1, a.id, buyers)
		a.grants(buyers, protocol.IdentityUnverified) // pending
		a.ended(protocol.EndedByOwner, a.pair)
		s.Chain.Do("final")
		a.grants(buyers, "")
		a.outside(buyers)
		require.Empty(t, a.owns(buyers))
		a.ended(protocol.EndedByOwner, a.pair)
		board := nodetest.As[protocol.AttentionBoard](s.Ask("GET", "/api/public/agents/asha/attention", ""))
		require.Equal(t, []any{true, live.Bid.ID, 1}, []any{board.Accepting, board.Bids[0].ID, board.FreeSlots})
		d.Good("POST", "/api/owner/bids/"+held.Bid.ID+"/confirm", `{"utr":"`+nodetest.NewUTR()+`"}`, a.token, nil)
		require.True(t, nodetest.As[protocol.MeetingInfo](s.Ask("GET", "/api/public/agents/asha/meetings", "")).Accepting)
		s.Ask("GET", strings.TrimPrefix(feed.URL, s.Base), "").Is(200)

		// The buyer has authority now: another profile may have the identity.
		s.Hosted("bina")
		require.NoError(t, s.Admin().EnrolIdentity(t.Context(), "bina", a.id.String(), buyers.Thumbprint()))
		p := nodetest.As[protocol.Post](a.signs(buyers, "POST", "/api/public/board", nodetest.GoodPost))
		require.Equal(t, "bina", *p.Author.Handle)
		require.Equal(t, protocol.Forbidden, a.signs(buyers, "DELETE", "/api/public/board/"+a.ownPost, "").Problem().Code)
		require.Equal(t, 204, a.signs(buyers, "DELETE", "/api/owner/identity", "").Code)
		require.Equal(t, protocol.NotFound, protocol.CodeOf(func() error { _, err := s.Admin().DropIdentity(t.Context(), "bina"); return err }()))

		// Bought back: the old record counts again, and revives nothing.
		s.Chain.Must(s.Chain.Registrar(1).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(0).Address()))
		a.grants(buyers, protocol.KeyUnknown)
		a.ended(protocol.EndedByOwner, a.pair)
		s.Chain.Publish(0, 0, a.id, a.pair)
		s.Chain.Do("final")
		a.grants(a.pair, "")
		a.outside(a.pair)
		a.ended(protocol.EndedByOwner, a.pair)
		require.NoError(t, s.Admin().EnrolIdentity(t.Context(), "asha", a.id.String(), a.pair.Thumbprint()))
		a.remains(a.pair)
		require.Equal(t, 401, s.AskSigned(a.addedPair, "GET", "/api/owner/threads", "").Code, "what the first enrolment brought stays ended")
	})
}

// TestEnrolment_Approved: an approval alone changes nothing; what the approved
// operator then writes ends the enrolment.
func TestEnrolment_Approved(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		s.Watch()
		const operator = 2
		wallet := must.Get(erc8004.ParseWalletKey(s.Chain.Accounts[operator].PrivateKey))(t)
		market := s.Chain.Registrar(operator)
		for handle, write := range map[string]func(a *actor, theirs key.Pair) protocol.EnrolmentEnd{
			"record": func(a *actor, theirs key.Pair) protocol.EnrolmentEnd {
				s.Chain.Publish(operator, operator, a.id, theirs)
				return protocol.EndedByKey
			},
			"cleared": func(a *actor, _ key.Pair) protocol.EnrolmentEnd {
				s.Chain.Must(market.SetMetadata(t.Context(), a.id.AgentID, erc8004.MetadataKeys, nil))
				return protocol.EndedByKey
			},
			"wallet": func(a *actor, theirs key.Pair) protocol.EnrolmentEnd {
				s.Chain.Must(market.SetAgentWallet(t.Context(), a.id.AgentID, market.Address(), wallet))
				s.Chain.Publish(operator, operator, a.id, theirs)
				return protocol.EndedByWallet
			},
		} {
			a := enrolled(s, handle, 0)
			s.Chain.Must(s.Chain.Registrar(0).Approve(t.Context(), a.id.AgentID, market.Address()))
			a.remains(a.pair)
			s.Chain.Do("final")
			a.remains(a.pair)
			theirs := nodetest.NewPair(t)
			why := write(a, theirs)
			a.ends(why, a.pair)
			s.Chain.Do("final")
			if why == protocol.EndedByWallet {
				a.grants(theirs, "")
				a.outside(theirs)
			} else {
				a.grants(theirs, protocol.KeyUnknown)
			}
			a.ended(why, a.pair)
		}
	})
}

// TestEnrolment_Record: a record for another key by the same owner moves the
// enrolment when it is final; one without keys ends it at once.
func TestEnrolment_Record(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		s.Watch()
		a := enrolled(s, "asha", 0)
		next := nodetest.NewPair(t)
		s.Chain.Publish(0, 0, a.id, next, a.pair)
		a.grants(next, protocol.IdentityUnverified)
		a.remains(a.pair)
		s.Chain.Do("final")
		moved := func(to key.Pair) {
			t.Helper()
			require.Eventually(t, func() bool { return strings.Contains(*a.profile().Identity.KeyDirectory, to.Thumbprint()) }, time.Minute, 20*time.Millisecond)
			a.holds(to)
		}
		moved(next)
		require.Equal(t, 200, a.signs(a.pair, "GET", "/api/owner/threads", "").Code, "the record names both")
		require.Equal(t, 401, s.AskSigned(next, "GET", "/api/owner/threads", "").Code, "not without the identity")

		last := nodetest.NewPair(t)
		s.Chain.Publish(0, 0, a.id, last)
		a.grants(next, protocol.KeyUnknown)
		a.grants(last, protocol.IdentityUnverified)
		require.NotNil(t, a.profile().Identity.ERC8004)
		s.Chain.Do("final")
		moved(last)
		for _, old := range []key.Pair{a.pair, next} {
			registration, jwks := a.files(old)
			require.Equal(t, [2]int{410, 410}, [2]int{registration, jwks})
			require.Equal(t, 401, s.AskSigned(old, "GET", "/api/owner/threads", "").Code)
		}
		require.Equal(t, 200, s.AskSigned(a.addedPair, "GET", "/api/owner/threads", "").Code, "what the identity added stays with it")

		s.Chain.Publish(0, 0, a.id)
		a.ends(protocol.EndedByKey, last)
		s.Chain.Do("final")
		a.grants(last, protocol.KeyUnknown)
		a.ended(protocol.EndedByKey, last)

		// Retired here by its owner, not on chain: that is for good on this node.
		b := enrolled(s, "bina", 1)
		require.Equal(t, 204, s.Ask("DELETE", "/api/owner/keys/"+b.pair.Thumbprint(), "", "Authorization", "Bearer "+b.token).Code)
		b.ended(protocol.EndedByKey, b.pair)
		b.outside(b.pair)
		require.Equal(t, protocol.Conflict, protocol.CodeOf(s.Admin().EnrolIdentity(t.Context(), "bina", b.id.String(), b.pair.Thumbprint())))

		// Dropped by the operator.
		c := enrolled(s, "chitra", 1)
		dropped := must.Get(s.Admin().DropIdentity(t.Context(), "chitra"))(t)
		require.Equal(t, c.id.String(), dropped)
		c.ended(protocol.EndedByDrop, c.pair)
		c.outside(c.pair)
	})
}

// TestEnrolment_Reorganised: an enrolment whose block the chain lost ends, also
// where nothing else changed.
func TestEnrolment_Reorganised(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, ",depth:2", change)
		s.Watch()
		a := enrolled(s, "asha", 0) // the head is a multiple of 32, which others call final
		s.Chain.Do("mine 6")
		b := enrolled(s, "bina", 1)
		s.Chain.Do("mine 1")
		s.Chain.Do("fork 2") // shallower than what the operator calls final
		a.remains(a.pair)
		b.remains(b.pair)
		s.Chain.Do("fork 8") // the block of the later one goes; its registration stays
		b.ends(protocol.EndedByBlock, b.pair)
		a.remains(a.pair)
		s.Chain.Do("final")
		b.grants(b.pair, "")
		b.outside(b.pair)
		b.ended(protocol.EndedByBlock, b.pair)

		// A sale that a reorganisation undoes: ended is ended.
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
		a.ends(protocol.EndedByOwner, a.pair)
		s.Chain.Do("fork 1")
		s.Chain.Do("mine 4")
		a.grants(a.pair, "")
		a.outside(a.pair)
		a.ended(protocol.EndedByOwner, a.pair)
	})
}

// TestEnrolment_Unwatched: where nobody has looked at the enrolment yet, a new
// owner's key has no part in the profile all the same; a node that was away ends at
// its first look what ended meanwhile; and of two processes one tells.
func TestEnrolment_Unwatched(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		a := enrolled(s, "asha", 0)
		stays := enrolled(s, "bina", 0)
		buyers := nodetest.NewPair(t)
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
		s.Chain.Publish(1, 1, a.id, buyers)
		s.Chain.Do("final")
		two := &nodetest.Stage{House: s.Second(change), Chain: s.Chain}
		if two.House == s.House {
			restart(s.House, change)
		}
		there := *a // at a process that has not looked at the identity before
		there.s = two
		there.grants(buyers, "")
		there.outside(buyers)
		require.NotNil(t, a.profile().Identity.ERC8004)

		s.Watch()
		if two.House != s.House {
			two.Watch()
		}
		a.ends(protocol.EndedByOwner, a.pair)
		stays.remains(stays.pair)
		notices := 0
		require.NoError(t, s.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
			for _, j := range jobs.Items {
				if strings.Contains(string(j.Args), `"identity.ended"`) {
					notices++
				}
			}
			return err
		}))
		require.Equal(t, 1, notices)
	})
}

// TestEnrolment_Before: one that was made before owners were kept is bound to who
// has the agent at the first look, or ends there.
func TestEnrolment_Before(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		a, b := enrolled(s, "asha", 0), enrolled(s, "bina", 0)
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), b.id.AgentID, s.Chain.Registrar(1).Address()))
		for _, x := range []*actor{a, b} {
			require.NoError(t, s.Admin().PutIdentity(t.Context(), x.handle, x.id.String(), x.pair.Thumbprint()))
			status := nodetest.As[protocol.IdentityStatus](s.Ask("GET", "/api/owner/identity", "", "Authorization", "Bearer "+x.token))
			require.Nil(t, status.Owner)
		}
		s.Watch()
		b.ends(protocol.EndedByKey, b.pair)
		require.Eventually(t, func() bool {
			status := nodetest.As[protocol.IdentityStatus](s.Ask("GET", "/api/owner/identity", "", "Authorization", "Bearer "+a.token))
			return status.Owner != nil
		}, time.Minute, 20*time.Millisecond)
		a.holds(a.pair)
	})
}
