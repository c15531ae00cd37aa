package contact_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/contact"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// world is a room on a database with a clock that the test moves.
type world struct {
	*contact.Contact
	t   *testing.T
	db  *storage.DB
	now *atomic.Int64 // Unix milliseconds
}

func each(t *testing.T, fn func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(open(t, c)) })
}

func open(t *testing.T, c storage.Config) *world {
	w := &world{t: t, now: new(atomic.Int64)}
	w.now.Store(time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC).UnixMilli())
	c.Now = func() time.Time { return time.UnixMilli(w.now.Load()) }
	db := must.Get(storage.Open(t.Context(), c))(t)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	w.db = db
	w.Contact = &contact.Contact{Base: "https://n1.example", DB: db, Private: true}
	return w
}

func (w *world) pass(d time.Duration) { w.now.Add(d.Milliseconds()) }

// profile puts an agent with a policy on the node.
func (w *world) profile(handle string, policy *protocol.PolicyDraft) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: strings.ToUpper(handle),
			Kind: protocol.Person, ContactPolicy: policy}})
		return err
	}))
}

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) error {
	return w.db.Write(w.t.Context(), fn)
}

var everybody = &protocol.PolicyDraft{Anonymous: true, OutsideAgentsWithIdentity: true}

// Callers.
var (
	visitor  = protocol.Caller{Standing: protocol.Proof, Network: "net-a"}
	outsider = protocol.Caller{Standing: protocol.Signed, Agent: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7", Owner: "0xa", KeyID: "key-7",
		Network: "net-b", Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}
	keyed    = protocol.Caller{Standing: protocol.Signed, KeyID: "key-8", Name: "https://agent.example", Network: "net-b"}
	bob      = protocol.Caller{Standing: protocol.Session, Account: "acc_bob", Handle: "bob", Handles: []string{"bob"}, Name: "Bob", Network: "net-c"}
	asha     = protocol.Caller{Standing: protocol.Session, Account: "acc_asha", Handle: "asha", Handles: []string{"asha"}, Name: "Asha", Network: "net-d"}
	operator = protocol.Caller{Standing: protocol.Operator}
)

func (w *world) begin(c protocol.Caller, in protocol.NewContact) (got protocol.ContactReceipt, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		got, err = w.Begin(ctx, tx, c, in)
		return err
	})
	return got, err
}

func (w *world) begun(c protocol.Caller) protocol.ContactReceipt {
	w.t.Helper()
	return must.Get(w.begin(c, protocol.NewContact{Handle: "asha", Message: "Hello"}))(w.t)
}

func (w *world) addMessage(c protocol.Caller, in protocol.NewMessage) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.Continue(ctx, tx, c, in)
		return err
	})
}

func (w *world) answer(c protocol.Caller, id, text string) (said protocol.Said, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		said, err = w.Answer(ctx, tx, c, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: id}, Message: text})
		return err
	})
	return said, err
}

func (w *world) close(c protocol.Caller, id string) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.Close(ctx, tx, c, protocol.ThreadRef{ThreadID: id})
		return err
	})
}

func (w *world) check(c protocol.Caller, in protocol.ThreadInput) (got protocol.Conversation, err error) {
	err = w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		got, err = w.Check(ctx, tx, c, in)
		return err
	})
	return got, err
}

func (w *world) thread(id string) protocol.Conversation {
	w.t.Helper()
	return must.Get(w.check(asha, protocol.ThreadInput{ThreadID: id}))(w.t)
}

// TestPolicy is who may write to whom with which kind (spec §2.5).
func TestPolicy(t *testing.T) {
	none, anonymous, identity := protocol.PolicyDraft{}, protocol.PolicyDraft{Anonymous: true}, protocol.PolicyDraft{OutsideAgentsWithIdentity: true}
	both := *everybody
	support := protocol.PolicyDraft{Anonymous: true, OutsideAgentsWithIdentity: true, Kinds: []string{"support"}}
	each(t, func(w *world) {
		for _, tt := range []struct {
			name   string
			policy *protocol.PolicyDraft
			caller protocol.Caller
			kind   protocol.ContactKind
			would  string // part of the refusal; "" admitted
		}{
			{"no policy, anonymous", nil, visitor, "", "does not accept messages"},
			{"no policy, owner", nil, asha, "", ""},
			{"no policy, operator", nil, operator, "", ""},
			{"nobody, anonymous", &none, visitor, "", "does not accept messages"},
			{"nobody, outside agent", &none, outsider, "", "does not accept messages"},
			{"nobody, profile of this node", &none, bob, "", "does not accept messages"},
			{"nobody, owner", &none, asha, "", ""},
			{"anonymous, anonymous", &anonymous, visitor, "", ""},
			{"anonymous, key without identity", &anonymous, keyed, "", ""},
			{"anonymous, outside agent", &anonymous, outsider, "", "unsigned message with a solved proof of work"},
			{"anonymous, profile of this node", &anonymous, bob, "", ""},
			{"identity, anonymous", &identity, visitor, "", "signed by an agent with a verified chain identity"},
			{"identity, key without identity", &identity, keyed, "", "signed by an agent with a verified chain identity"},
			{"identity, outside agent", &identity, outsider, "", ""},
			{"identity, profile of this node", &identity, bob, "", ""},
			{"both, anonymous", &both, visitor, protocol.QuoteRequest, ""},
			{"both, outside agent", &both, outsider, protocol.Support, ""},
			{"support only, support", &support, visitor, protocol.Support, ""},
			{"support only, question by default", &support, visitor, "", "it accepts: support"},
			{"support only, quote request", &support, outsider, protocol.QuoteRequest, "it accepts: support"},
			{"support only, question of the owner", &support, asha, protocol.Question, ""},
		} {
			w.profile("asha", tt.policy)
			got, err := w.begin(tt.caller, protocol.NewContact{Handle: "asha", Message: "Hello", Kind: tt.kind})
			if tt.would != "" {
				require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(err), tt.name)
				require.ErrorContains(w.t, err, tt.would, tt.name)
				continue
			}
			require.NoError(w.t, err, tt.name)
			require.Equal(w.t, protocol.ThreadOpen, got.State)
			require.NoError(w.t, w.close(asha, got.ThreadID))
		}
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.begin(visitor, protocol.NewContact{Handle: "nobody", Message: "Hello"}))))
	})
}

// TestStates is every arrow of the table of states (contract §5), and those that
// must not be: nothing leaves closed.
func TestStates(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		writes := func(id, token string) error {
			return w.addMessage(visitor, protocol.NewMessage{ThreadID: id, ReadToken: token, Message: "And?"})
		}
		answers := func(id, _ string) error { _, err := w.answer(asha, id, "Yes."); return err }
		closes := func(id, _ string) error { return w.close(asha, id) }
		silent := func(string, string) error { w.pass(protocol.ThreadSilence); return w.runJobs(nil) }
		type move = func(id, token string) error
		for _, tt := range []struct {
			name    string
			before  []move
			move    move
			state   protocol.ThreadState
			code    protocol.Code
			unread  int // of the owner
			message int
		}{
			{"begun", nil, func(string, string) error { return nil }, protocol.ThreadOpen, "", 1, 1},
			{"open, writer", nil, writes, protocol.ThreadOpen, "", 2, 2},
			{"open, agent", nil, answers, protocol.ThreadAnswered, "", 0, 2},
			{"answered, agent", []move{answers}, answers, protocol.ThreadAnswered, "", 0, 3},
			{"answered, writer", []move{answers}, writes, protocol.ThreadOpen, "", 1, 3},
			{"open, closed by the owner", nil, closes, protocol.ThreadClosed, "", 1, 1},
			{"answered, closed by the owner", []move{answers}, closes, protocol.ThreadClosed, "", 0, 2},
			{"open, thirty days", nil, silent, protocol.ThreadClosed, "", 1, 1},
			{"answered, thirty days", []move{answers}, silent, protocol.ThreadClosed, "", 0, 2},
			{"closed, closed again", []move{closes}, closes, protocol.ThreadClosed, "", 1, 1},
			{"closed, writer", []move{closes}, writes, protocol.ThreadClosed, protocol.Conflict, 1, 1},
			{"closed, agent", []move{closes}, answers, protocol.ThreadClosed, protocol.Conflict, 1, 1},
			{"closed by silence, writer", []move{silent}, writes, protocol.ThreadClosed, protocol.Conflict, 1, 1},
		} {
			begun := w.begun(visitor)
			for _, m := range tt.before {
				require.NoError(w.t, m(begun.ThreadID, begun.ReadToken), tt.name)
			}
			require.Equal(w.t, tt.code, protocol.CodeOf(tt.move(begun.ThreadID, begun.ReadToken)), tt.name)
			got := w.thread(begun.ThreadID)
			require.Equal(w.t, tt.state, got.State, tt.name)
			require.Equal(w.t, tt.state == protocol.ThreadClosed, got.ClosedAt != nil, tt.name)
			require.Equal(w.t, tt.unread, got.Unread, tt.name)
			require.Equal(w.t, tt.message, got.Count, tt.name)
			require.Len(w.t, got.Messages.Items, tt.message, tt.name)
			require.NoError(w.t, w.close(asha, begun.ThreadID))
		}
	})
}

// TestSilence: the job looks again, so that a thread that was written in
// meanwhile stays open for another thirty days.
func TestSilence(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		begun := w.begun(visitor)
		w.pass(protocol.ThreadSilence - time.Hour)
		must.Get(w.answer(asha, begun.ThreadID, "Sorry, I was away."))(w.t)
		w.pass(2 * time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, protocol.ThreadAnswered, w.thread(begun.ThreadID).State)
		w.pass(protocol.ThreadSilence - 3*time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, protocol.ThreadAnswered, w.thread(begun.ThreadID).State)
		w.pass(3 * time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, protocol.ThreadClosed, w.thread(begun.ThreadID).State)
		require.NoError(w.t, w.DB.Numbered(w.t.Context()))
		for reader, kind := range map[string]string{storage.ThreadReader(begun.ThreadID): storage.NewsClosed, "handle:asha": storage.NewsLapsed} {
			require.NoError(w.t, w.DB.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				items, _, _, err := tx.News().After(ctx, []string{reader}, 0, 10)
				require.NotEmpty(w.t, items, reader)
				last := items[len(items)-1]
				require.Equal(w.t, []string{kind, begun.ThreadID}, []string{last.Kind, last.Ref}, "both sides are told")
				return err
			}))
		}
	})
}

// TestLimits: nobody floods an inbox.
func TestLimits(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		for _, tt := range []struct {
			name    string
			caller  protocol.Caller
			another protocol.Caller // who is not held to it
			most    int
		}{
			{"signed", outsider, keyed, protocol.MaxOpenThreads},
			{"session", bob, outsider, protocol.MaxOpenThreads},
			{"network", visitor, protocol.Caller{Standing: protocol.Proof, Network: "net-z"}, protocol.MaxOpenOfNetwork},
		} {
			var first protocol.ContactReceipt
			for i := range tt.most {
				if got := w.begun(tt.caller); i == 0 {
					first = got
				}
			}
			_, err := w.begin(tt.caller, protocol.NewContact{Handle: "asha", Message: "Once more"})
			require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err), tt.name)
			if tt.name == "network" {
				w.begun(tt.another)
			}
			must.Get(w.answer(asha, first.ThreadID, "Yes."))(w.t)
			w.begun(tt.caller) // an answered one does not count
		}

		last := w.begun(protocol.Caller{Standing: protocol.Proof, Network: "net-y"})
		message := protocol.NewMessage{ThreadID: last.ThreadID, ReadToken: last.ReadToken, Message: "Hello?"}
		for range protocol.MaxUnanswered - 1 {
			require.NoError(w.t, w.addMessage(visitor, message))
		}
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(w.addMessage(visitor, message)))
		must.Get(w.answer(asha, last.ThreadID, "Slowly."))(w.t)
		require.NoError(w.t, w.addMessage(visitor, message))
		for range protocol.MaxThreadMessages - protocol.MaxUnanswered - 2 {
			must.Get(w.answer(asha, last.ThreadID, "Yes."))(w.t)
		}
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(w.answer(asha, last.ThreadID, "One more."))))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(w.addMessage(visitor, message)))
		require.Equal(w.t, protocol.MaxThreadMessages, w.thread(last.ThreadID).Count)
	})
}

// TestRace has two processes write into one thread at once: every message has
// its number, none is lost, and nothing comes after the close.
func TestRace(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		one, two := open(t, c), open(t, c)
		one.profile("asha", everybody)
		begun, err := one.begin(visitor, protocol.NewContact{Handle: "asha", Message: "Hello", CallbackURL: "https://example.com/hook"})
		require.NoError(t, err)
		var group sync.WaitGroup
		var written, answered atomic.Int64
		for i := range 24 {
			w := []*world{one, two}[i%2]
			group.Go(func() {
				switch {
				case i%3 == 0:
					if _, err := w.answer(asha, begun.ThreadID, fmt.Sprint("Answer ", i)); err == nil {
						answered.Add(1)
					}
				case i == 16:
					_ = w.close(asha, begun.ThreadID)
				default:
					if w.addMessage(visitor, protocol.NewMessage{ThreadID: begun.ThreadID, ReadToken: begun.ReadToken, Message: fmt.Sprint("Message ", i)}) == nil {
						written.Add(1)
					}
				}
			})
		}
		group.Wait()
		got := must.Get(two.check(asha, protocol.ThreadInput{ThreadID: begun.ThreadID, Paging: protocol.Paging{Limit: 100}}))(t)
		require.Equal(t, protocol.ThreadClosed, got.State)
		require.EqualValues(t, 1+written.Load()+answered.Load(), got.Count)
		require.Len(t, got.Messages.Items, got.Count)
		var page protocol.Page[protocol.CallbackDelivery]
		require.NoError(t, one.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err = one.ListCallbacks(ctx, tx, asha, protocol.CallbackQuery{Paging: protocol.Paging{Limit: 100}})
			return err
		}))
		require.Len(t, page.Items, int(answered.Load()), "one delivery an answer")
	})
}

// TestLimits_Race has two processes begin more threads at once than a writer may
// have: as many as it may are begun.
func TestLimits_Race(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		one, two := open(t, c), open(t, c)
		one.profile("asha", everybody)
		var group sync.WaitGroup
		var begun atomic.Int64
		for i := range 4 * protocol.MaxOpenThreads {
			w := []*world{one, two}[i%2]
			group.Go(func() {
				if _, err := w.begin(outsider, protocol.NewContact{Handle: "asha", Message: "Hello"}); err == nil {
					begun.Add(1)
				}
			})
		}
		group.Wait()
		require.EqualValues(t, protocol.MaxOpenThreads, begun.Load())
	})
}
