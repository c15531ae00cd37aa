package contact_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestRights is who reads and writes in which thread (spec §2.11). To everyone
// else there is no such thread.
func TestRights(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.profile("bob", everybody)
		browser := visitor
		browser.Visitor = strings.Repeat("v", 32)
		byBrowser, bySigner, byBob, byKey := w.begun(browser), w.begun(outsider), w.begun(bob), w.begun(keyed)

		stranger := protocol.Caller{}
		paid := protocol.Caller{Standing: protocol.Proof, Network: "net-a"} // the same network is not the same writer
		carol := protocol.Caller{Standing: protocol.Session, Account: "acc_carol", Handle: "carol", Handles: []string{"carol"}}
		sibling := protocol.Caller{Standing: protocol.Session, Account: "acc_bob", Handle: "other", Handles: []string{"other"}}
		narrow := asha
		narrow.Scopes = []protocol.Scope{protocol.ScopePost}
		elsewhere := bob
		elsewhere.Scopes = []protocol.Scope{protocol.ScopeNotify}
		otherBrowser := stranger
		otherBrowser.Visitor = strings.Repeat("w", 32)
		sameBrowser := stranger
		sameBrowser.Visitor = browser.Visitor
		signedIn := carol
		signedIn.Visitor = browser.Visitor
		otherAgent := outsider
		otherAgent.Agent = strings.Replace(outsider.Agent, ":7", ":8", 1)
		sameAgent := protocol.Caller{Standing: protocol.Signed, Agent: outsider.Agent, Owner: outsider.Owner, KeyID: "another key of it"}
		buyer := sameAgent
		buyer.Owner = "0xb"
		buyerWithKey := outsider
		buyerWithKey.Owner = "0xb"
		bobSigns := protocol.Caller{Standing: protocol.Signed, Handle: "bob", KeyID: "key-bob"}
		ashaSigns := protocol.Caller{Standing: protocol.Signed, Handle: "asha", KeyID: "key-asha"}
		withToken := func(c protocol.Caller, token string) protocol.Caller { c.ReadToken = token; return c }
		forged := protocol.NewReadToken()

		for _, tt := range []struct {
			name   string
			thread protocol.ContactReceipt
			caller protocol.Caller
			token  string // as an argument
			reads  bool
			writes bool
		}{
			{"stranger", byBrowser, stranger, "", false, false},
			{"who paid, from the same network", byBrowser, paid, "", false, false},
			{"wrong token", byBrowser, paid, forged, false, false},
			{"token of another thread", byBrowser, paid, bySigner.ReadToken, false, false},
			{"right token", byBrowser, paid, byBrowser.ReadToken, true, true},
			{"right token as bearer", byBrowser, withToken(paid, byBrowser.ReadToken), "", true, true},
			{"wrong token as bearer", byBrowser, withToken(paid, forged), "", false, false},
			{"not a token at all", byBrowser, paid, "x", false, false},
			{"the browser", byBrowser, sameBrowser, "", true, true},
			{"the browser with a wrong token", byBrowser, sameBrowser, forged, false, false},
			{"the browser, signed in since", byBrowser, signedIn, "", true, true},
			{"another browser", byBrowser, otherBrowser, "", false, false},
			{"a browser, where none began", bySigner, otherBrowser, "", false, false},
			{"another owner", byBrowser, carol, "", false, false},
			{"the owner", byBrowser, asha, "", true, false},
			{"the owner with a wrong token", byBrowser, asha, forged, false, false},
			{"the owner with the token of another thread", byBrowser, asha, bySigner.ReadToken, false, false},
			{"the agent itself, signing", byBrowser, ashaSigns, "", true, false},
			{"the owner with a token for posts", byBrowser, narrow, "", false, false},
			{"the signer", bySigner, outsider, "", true, true},
			{"the signer with another key of its identity", bySigner, sameAgent, "", true, true},
			{"who bought the identity", bySigner, buyer, "", false, false},
			{"who bought the identity and the key", bySigner, buyerWithKey, "", false, false},
			{"another signer with the same key", bySigner, otherAgent, "", false, false},
			{"the key alone", bySigner, protocol.Caller{Standing: protocol.Signed, KeyID: outsider.KeyID}, "", false, false},
			{"a key without identity", byKey, keyed, "", true, true},
			{"another key", byKey, protocol.Caller{Standing: protocol.Signed, KeyID: "key-9"}, "", false, false},
			{"the profile", byBob, bob, "", true, true},
			{"the profile with a token for something else", byBob, elsewhere, "", false, false},
			{"the profile, signing", byBob, bobSigns, "", true, true},
			{"another profile of the account", byBob, sibling, "", false, false},
			{"the operator", byBob, operator, "", false, false},
		} {
			_, err := w.check(tt.caller, protocol.ThreadInput{ThreadID: tt.thread.ThreadID, ReadToken: tt.token})
			if tt.reads {
				require.NoError(w.t, err, tt.name)
			} else {
				require.Equal(w.t, checkUnknown(w), err, tt.name)
			}
			err = w.addMessage(tt.caller, protocol.NewMessage{ThreadID: tt.thread.ThreadID, ReadToken: tt.token, Message: "And?"})
			switch {
			case tt.writes:
				require.NoError(w.t, err, tt.name)
			case tt.reads:
				require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(err), tt.name)
			default:
				require.Equal(w.t, checkUnknown(w), err, tt.name)
			}
		}
		said := w.thread(bySigner.ThreadID).Messages.Items
		require.True(w.t, said[1].Author.Verified)
		require.NoError(w.t, w.addMessage(paid, protocol.NewMessage{ThreadID: bySigner.ThreadID, ReadToken: bySigner.ReadToken, Message: "Really me?"}))
		said = w.thread(bySigner.ThreadID).Messages.Items
		require.Equal(w.t, "Agent 7", said[0].Author.Name)
		require.False(w.t, said[len(said)-1].Author.Verified, "the holder of the token is not the signer")
		require.Nil(w.t, said[len(said)-1].Author.ERC8004)
	})
}

// TestToken_Name: who holds a read token and signs goes by its own name.
func TestToken_Name(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		begun := must.Get(w.begin(visitor, protocol.NewContact{Handle: "asha", Message: "Hello", Name: "Dev"}))(w.t)
		for _, c := range []protocol.Caller{visitor, outsider} {
			require.NoError(w.t, w.addMessage(c, protocol.NewMessage{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken, Message: "And?"}))
		}
		said := w.thread(begun.ThreadID).Messages.Items
		require.Equal(w.t, "Dev", said[1].Author.Name)
		require.False(w.t, said[1].Author.Verified)
		require.Equal(w.t, "Agent 7", said[2].Author.Name)
		require.True(w.t, said[2].Author.Verified)
	})
}

// checkUnknown reads a thread that never existed, and returns the error.
func checkUnknown(w *world) error {
	_, err := w.check(protocol.Caller{}, protocol.ThreadInput{ThreadID: "thr_01k9y3v6k8e5w9q2x4z7c1m0ad"})
	require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
	return err
}

// TestInbox: an owner's operations reach the owner's threads and no other's.
func TestInbox(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.profile("bob", everybody)
		begun := w.begun(visitor)
		both := asha
		both.Handle, both.Handles = "", []string{"asha", "bob"}
		for name, c := range map[string]protocol.Caller{"another owner": bob, "an outside agent": outsider, "nobody's": keyed} {
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.answer(c, begun.ThreadID, "Yes."))), name)
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(w.close(c, begun.ThreadID)), name)
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.block(c, begun.ThreadID))), name)
		}
		_, err := w.answer(operator, begun.ThreadID, "Yes.")
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(err), "nobody speaks for an agent but its owner")
		said := must.Get(w.answer(both, begun.ThreadID, "Yes."))(w.t)
		require.Equal(w.t, "asha", *said.Message.Author.Handle, "as the one that was written to")
		require.Equal(w.t, "ASHA", said.Message.Author.Name)

		require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(w.t, must.Get(w.List(ctx, tx, bob, protocol.ThreadQuery{}))(w.t).Items)
			require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(must.Err(w.List(ctx, tx, bob, protocol.ThreadQuery{Owned: protocol.Owned{Handle: "asha"}}))))
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.ListCallbacks(ctx, tx, bob, protocol.CallbackQuery{ThreadID: begun.ThreadID}))))
			_, err := w.Get(ctx, tx, bob, protocol.ThreadPage{ThreadRef: protocol.ThreadRef{ThreadID: begun.ThreadID}})
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(err))
			got, err := w.Get(ctx, tx, asha, protocol.ThreadPage{ThreadRef: protocol.ThreadRef{ThreadID: begun.ThreadID}, Paging: protocol.Paging{Limit: 1}})
			require.NoError(w.t, err)
			require.Len(w.t, got.Messages.Items, 1)
			got = must.Get(w.Get(ctx, tx, asha, protocol.ThreadPage{ThreadRef: protocol.ThreadRef{ThreadID: begun.ThreadID},
				Paging: protocol.Paging{After: *got.Messages.Next}}))(w.t)
			require.Equal(w.t, "Yes.", got.Messages.Items[0].Text)
			require.Nil(w.t, got.Messages.Next)
			return nil
		}))
	})
}

// TestList walks the inbox while others write: nothing is skipped or doubled.
func TestList(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		want := map[string]bool{}
		for range 25 {
			want[w.begun(visitor).ThreadID] = true
			w.pass(time.Millisecond)
		}
		list := func(q protocol.ThreadQuery) (p protocol.Page[protocol.Thread], err error) {
			err = w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				p, err = w.List(ctx, tx, asha, q)
				return err
			})
			return p, err
		}
		seen := map[string]bool{}
		for q := (protocol.ThreadQuery{Paging: protocol.Paging{Limit: 7}}); ; {
			p := must.Get(list(q))(w.t)
			for _, item := range p.Items {
				require.False(w.t, seen[item.ThreadID], "doubled")
				seen[item.ThreadID] = true
			}
			if p.Next == nil {
				break
			}
			q.After = *p.Next
			newest := w.begun(protocol.Caller{Standing: protocol.Proof, Network: "net-x"})
			must.Get(w.answer(asha, newest.ThreadID, "Yes."))(w.t)
		}
		require.Equal(w.t, want, seen)
		require.Len(w.t, must.Get(list(protocol.ThreadQuery{State: protocol.ThreadAnswered}))(w.t).Items, 3)
		some := must.Get(list(protocol.ThreadQuery{State: protocol.ThreadOpen, Paging: protocol.Paging{Limit: 1}}))(w.t)
		_, err := list(protocol.ThreadQuery{State: protocol.ThreadAnswered, Paging: protocol.Paging{After: *some.Next}})
		require.Equal(w.t, protocol.InvalidCursor, protocol.CodeOf(err), "a cursor is of one listing")
	})
}

func (w *world) block(c protocol.Caller, id string) (b protocol.BlockedWriter, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		b, err = w.Block(ctx, tx, c, protocol.NewBlock{ThreadRef: protocol.ThreadRef{ThreadID: id}, Note: "spam"})
		return err
	})
	return b, err
}

// TestBlocks: a blocked writer is known again by identity, profile, key or
// network; for one agent only; until it is lifted.
func TestBlocks(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.profile("bob", everybody)
		hosted := protocol.Caller{Standing: protocol.Signed, Handle: "carol", Agent: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:9",
			Owner: "0xa", KeyID: "key-c", Name: "Carol"}
		for _, tt := range []struct {
			name    string
			caller  protocol.Caller
			knownBy protocol.KnownBy
			same    []protocol.Caller // refused as well
			others  []protocol.Caller // not refused
		}{
			{"network", visitor, protocol.ByNetwork, nil, []protocol.Caller{{Standing: protocol.Proof, Network: "net-q"},
				{Standing: protocol.Signed, KeyID: "key-q", Network: visitor.Network}}},
			{"identity", outsider, protocol.ByIdentity,
				[]protocol.Caller{{Standing: protocol.Signed, Agent: outsider.Agent, Owner: outsider.Owner, KeyID: "new"},
					{Standing: protocol.Signed, KeyID: outsider.KeyID}},
				[]protocol.Caller{keyed, {Standing: protocol.Signed, Agent: outsider.Agent, Owner: "0xb", KeyID: "the buyer's"}}},
			{"key", keyed, protocol.ByKey, []protocol.Caller{ // with a chain identity since, or a profile
				{Standing: protocol.Signed, KeyID: keyed.KeyID, Agent: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:11", Owner: "0xa"},
				{Standing: protocol.Signed, KeyID: keyed.KeyID, Handle: "dave"}}, []protocol.Caller{outsider}},
			{"account and profile", bob, protocol.ByAccount, []protocol.Caller{{Standing: protocol.Signed, Handle: "bob", KeyID: "k"}}, nil},
			{"identity and profile", hosted, protocol.ByIdentity, []protocol.Caller{{Standing: protocol.Session, Account: "acc_c", Handle: "carol"}}, nil},
		} {
			begun := w.begun(tt.caller)
			b, err := w.block(asha, begun.ThreadID)
			require.NoError(w.t, err, tt.name)
			require.Equal(w.t, tt.knownBy, b.KnownBy, tt.name)
			require.Equal(w.t, b, must.Get(w.block(asha, begun.ThreadID))(w.t), "blocked once")
			for _, c := range append(tt.same, tt.caller) {
				_, err := w.begin(c, protocol.NewContact{Handle: "asha", Message: "Me again"})
				require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(err), tt.name)
			}
			for _, c := range tt.others {
				w.begun(c)
			}
			on := protocol.NewMessage{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken, Message: "And here?"}
			require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(w.addMessage(tt.caller, on)), tt.name)
			require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(w.addMessage(protocol.Caller{Standing: protocol.Proof, Network: "net-other"}, on)),
				"the thread's writer, from elsewhere")
			require.NoError(w.t, must.Err(w.check(tt.caller, protocol.ThreadInput{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken})), "it may still read")
			if tt.caller.Handle != "bob" {
				require.NoError(w.t, must.Err(w.begin(tt.caller, protocol.NewContact{Handle: "bob", Message: "Hello"})), "a block is one agent's")
			}
			require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				require.Equal(w.t, []protocol.BlockedWriter{b}, must.Get(w.ListBlocked(ctx, tx, asha, protocol.BlockQuery{}))(w.t).Items)
				require.Empty(w.t, must.Get(w.ListBlocked(ctx, tx, bob, protocol.BlockQuery{}))(w.t).Items)
				return nil
			}))
			lift := func(c protocol.Caller) error {
				return w.write(func(ctx context.Context, tx *storage.Tx) error {
					_, err := w.Unblock(ctx, tx, c, protocol.BlockRef{ID: b.ID})
					return err
				})
			}
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(lift(bob)), "another owner's")
			require.NoError(w.t, lift(asha))
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(lift(asha)))
			require.NoError(w.t, w.addMessage(tt.caller, on), tt.name)
		}
	})
}

// TestNotices: the owner hears of a thread and of each further message, in words
// that hold none of them.
func TestNotices(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.begun(visitor)
		require.Empty(w.t, w.notices(), "an owner who chose no way to be told costs no job")
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Mail: "asha@example.org"})
		}))
		begun := must.Get(w.begin(visitor, protocol.NewContact{Handle: "asha", Message: "The secret recipe", Kind: protocol.QuoteRequest, Name: "Dev"}))(w.t)
		for range 3 { // told of once, as long as the owner was not told
			require.NoError(w.t, w.addMessage(visitor, protocol.NewMessage{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken, Message: "Another secret"}))
		}
		must.Get(w.answer(asha, begun.ThreadID, "No."))(w.t)
		got := w.notices()
		require.Len(w.t, got, 2)
		for i, event := range []protocol.NoticeEvent{protocol.ThreadBegun, protocol.ThreadMessage} {
			require.Contains(w.t, got[i], `"event":"`+string(event)+`"`)
			require.Contains(w.t, got[i], `"subject":"`+begun.ThreadID+`"`)
			require.Contains(w.t, got[i], `"title":"Quote request from Dev (unverified)"`)
			require.NotContains(w.t, got[i], "secret")
		}
	})
}

// TestProfileDeleted: the next owner of a handle finds nothing of its threads.
func TestProfileDeleted(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		begun := w.begun(visitor)
		must.Get(w.block(asha, begun.ThreadID))(w.t)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") }))
		w.profile("asha", everybody)
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.check(asha, protocol.ThreadInput{ThreadID: begun.ThreadID}))))
		w.begun(visitor)
	})
}

// TestAnswer_OfABlockedProfile: the owner of several profiles does not answer as
// the one that the operator has blocked, and nobody writes to it.
func TestAnswer_OfABlockedProfile(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.profile("bob", everybody)
		both := asha
		both.Handle, both.Handles = "", []string{"asha", "bob"}
		begun := w.begun(visitor)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Blocks().Put(ctx, protocol.Block{ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: protocol.BlockHandle, Value: "asha", Actor: "operator",
				CreatedAt: tx.Now})
		}))
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(must.Err(w.answer(both, begun.ThreadID, "Yes."))))
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(must.Err(w.begin(visitor, protocol.NewContact{Handle: "asha", Message: "Hello?"}))))
		err := w.addMessage(visitor, protocol.NewMessage{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken, Message: "Hello?"})
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(err))
	})
}
