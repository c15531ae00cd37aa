package meeting_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestOneAnswer: whatever is known of a mailbox, who names it gets the same answer by the same steps; the
// letters decide. Nobody locks it out by naming it.
func TestOneAnswer(t *testing.T) {
	each(t, true, func(w *world) {
		w.person("bela")
		w.settings("bela", always())
		at := start.Add(80 * 24 * time.Hour)
		names := 100
		ask := func(mail, to string) protocol.MeetingReceipt {
			w.t.Helper()
			names++
			got, err := does(w, w.Ask, stranger(names), protocol.NewMeeting{Handle: to, Requester: "Ravi", Email: mail, Purpose: "Yarn.", DurationMin: 30,
				StartsAt: at.Format(time.RFC3339)})
			require.NoError(w.t, err, mail)
			require.Equal(w.t, protocol.MeetingUnconfirmed, got.Request.State)
			return got
		}
		last := func() string { return w.sent[len(w.sent)-1].Text }
		stop := func(text string) string { return linkIn(text[strings.LastIndex(text, "no more mail"):]) }
		// What is known of five mailboxes: nothing; a request waits; it was confirmed; mail came back; it wants none.
		waits := ask("waits@gmail.com", "asha")
		w.runJobs()
		ask("done@example.org", "asha")
		w.runJobs()
		require.NoError(w.t, w.use(linkIn(last()), protocol.MeetingLinkConfirm))
		bounces := ask("bounces@example.org", "asha")
		w.runJobs()
		require.NoError(w.t, w.Bounced(context.Background(), strings.TrimPrefix(bounces.Request.ID, "mtg_")))
		ask("stopped@example.org", "asha")
		w.runJobs()
		require.NoError(w.t, w.use(stop(last()), protocol.MeetingLinkStop))
		require.NoError(w.t, w.use(stop(last()), protocol.MeetingLinkStop), "again, which changes nothing")
		sent := len(w.sent)
		w.pass(time.Second)

		shape := func(r protocol.MeetingReceipt) protocol.MeetingRequest {
			v := r.Request
			v.ID, v.Note = "", "A mail goes to x"+v.Note[len("A mail goes to x"):]
			return v
		}
		want := shape(ask("nothing@example.org", "asha"))
		steps := map[string][]string{}
		for _, mail := range []string{"other@example.org", "waits@gmail.com", "Wai.ts+tag@googlemail.com",
			"done@example.org", "bounces@example.org", "stopped@example.org"} {
			w.db.Watch(func(query string) { steps[mail] = append(steps[mail], query) })
			got := ask(mail, "asha")
			w.db.Watch(nil)
			require.Equal(w.t, want, shape(got), mail)
			w.runJobs()
			require.Equal(w.t, want, func() protocol.MeetingRequest { got.Request = w.get(got); return shape(got) }(), "nor later: %s", mail)
		}
		require.NotEmpty(w.t, steps["other@example.org"])
		for mail, queries := range steps {
			require.Equal(w.t, steps["other@example.org"], queries, "the steps for %s", mail)
		}
		var to []string
		for _, l := range w.sent[sent:] {
			to = append(to, l.To)
		}
		require.ElementsMatch(w.t, []string{"nothing@example.org", "other@example.org", "done@example.org"}, to, "one letter to who may have one")

		// The link of the first letter shows what came later, so that its reader is not locked out.
		first := linkIn(w.sent[0].Text)
		w.pass(time.Second)
		own := ask("waits@gmail.com", "bela")
		shown := must.Get(does(w, w.ReadLink, protocol.Caller{}, protocol.MeetingLinkInput{Ticket: first}))(w.t)
		require.Len(w.t, shown.Requests, 4)
		require.Equal(w.t, own.Request.ID, shown.Requests[0].ID)
		confirm := func(id string) protocol.Code {
			_, err := does(w, w.UseLink, protocol.Caller{}, protocol.MeetingLinkUse{MeetingLinkInput: protocol.MeetingLinkInput{Ticket: first}, ID: id,
				Do: protocol.MeetingLinkConfirm})
			return protocol.CodeOf(err)
		}
		require.Equal(w.t, protocol.Validation, confirm(""), "which of them")
		require.Equal(w.t, protocol.Gone, confirm("mtg_01k9y3v6k8e5w9q2x4z7c1m0ad"))
		require.Empty(w.t, confirm(own.Request.ID))
		require.Empty(w.t, confirm(waits.Request.ID))
		require.Equal(w.t, protocol.Conflict, confirm(shown.Requests[1].ID), "one of a mailbox waits for a person")

		// The letter to somebody who has requests says so.
		w.pass(time.Hour)
		ask("done@example.org", "bela")
		w.runJobs()
		require.Contains(w.t, last(), "You have these requests already")
		require.NotContains(w.t, last(), "Yarn")
		require.NoError(w.t, w.db.Check(context.Background()))
	})
}

// TestLetters: how many letters strangers can cause to one mailbox; known callers cause theirs all the same.
func TestLetters(t *testing.T) {
	each(t, true, func(w *world) {
		at := start.Add(80 * 24 * time.Hour)
		n := 0
		letters := func(c protocol.Caller) int {
			w.t.Helper()
			w.pass(time.Second)
			before := len(w.sent)
			must.Get(w.asks(c, "victim@example.org", at))(w.t)
			w.runJobs()
			return len(w.sent) - before
		}
		fresh := func() protocol.Caller { n++; return stranger(n) }
		require.Equal(w.t, 1, letters(fresh()))
		w.pass(time.Minute)
		require.Zero(w.t, letters(fresh()), "one an hour")
		w.pass(time.Hour)
		w.runJobs()
		require.Len(w.t, w.sent, 2, "the second letter is sent when it may")
		known := protocol.Caller{Standing: protocol.Signed, Agent: "eip155:1:0x1:7", KeyID: "k"}
		require.Equal(w.t, 1, letters(known), "of strangers' letters nothing delays a known caller's")
		w.pass(10 * 24 * time.Hour)
		w.runJobs()
		require.Equal(w.t, 1, letters(fresh()))
		w.pass(24 * time.Hour)
		require.Zero(w.t, letters(fresh()), "then one a week, while no link is used")

		w.PerHour = 4
		w.pass(2 * time.Hour)
		for i := range 4 {
			must.Get(w.asks(fresh(), fmt.Sprintf("a%d@example.org", i), at))(w.t)
		}
		before := len(w.sent)
		w.runJobs()
		require.Len(w.t, w.sent[before:], 2, "strangers have half of the node's letters of an hour")
		must.Get(w.asks(known, "k@example.org", at))(w.t)
		w.runJobs()
		require.Len(w.t, w.sent[before:], 3, "known callers the rest, at once")
		w.pass(70 * time.Minute)
		w.runJobs()
		require.Len(w.t, w.sent[before:], 5, "the others are sent later")
	})
}

// TestUnconfirmed: unconfirmed requests of any number of networks close a person, and the node's mail, to
// nobody known. The price rises, the oldest gives way, and says so.
func TestUnconfirmed(t *testing.T) {
	each(t, true, func(w *world) {
		at := start.Add(80 * 24 * time.Hour)
		half := protocol.SharedMeetings.Strangers()
		var first []protocol.MeetingReceipt
		const asked = 120
		for n := range asked {
			c := stranger(n)
			c.Above = 7
			got, err := w.asks(c, fmt.Sprintf("made%d@up.example", n), at)
			require.NoError(w.t, err, n)
			first = append(first, got)
			w.pass(time.Second)
			if n%20 == 19 {
				w.runJobs()
			}
			if n == half/2 {
				require.Equal(w.t, protocol.PowRequired, protocol.CodeOf(must.Err(w.asks(stranger(1000), "late@example.org", at))), "the price follows what waits")
			}
		}
		w.runJobs()
		old := w.get(first[0])
		require.Equal(w.t, protocol.MeetingExpired, old.State)
		require.Contains(w.t, old.Note, "gave way")
		require.Equal(w.t, protocol.MeetingUnconfirmed, w.get(first[asked-1]).State)
		through := 0
		for n := range 40 {
			c := protocol.Caller{Standing: protocol.Signed, Agent: fmt.Sprint("eip155:1:0x1:", n), KeyID: fmt.Sprint("k", n), Network: "n"}
			before := len(w.sent)
			got, err := w.asks(c, fmt.Sprintf("signer%d@example.org", n), at)
			require.NoError(w.t, err, n)
			w.runJobs()
			require.Len(w.t, w.sent[before:], 1, "its letter goes at once")
			require.NoError(w.t, w.use(linkIn(w.sent[before].Text), protocol.MeetingLinkConfirm))
			if w.get(got).State == protocol.MeetingSubmitted {
				through++
			}
		}
		require.Equal(w.t, 40, through, "every known caller gets through")
		require.NoError(w.t, w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.Crowds().Since(ctx, "asha", storage.CrowdMeetingGaveWay, storage.CrowdFor)
			require.Equal(w.t, asked-half, n, "the owner sees how many gave way")
			return err
		}))
		for range 24 {
			w.pass(time.Hour + time.Minute)
			w.runJobs()
		}
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.Get, protocol.Caller{}, input(first[0])))), "deleted like others")
		require.NoError(w.t, w.db.Check(context.Background()))
	})
}

// TestLimits_Waiting: how many requests of one mailbox, one network and of everybody may wait.
func TestLimits_Waiting(t *testing.T) {
	each(t, false, func(w *world) {
		hours := 24
		tries := func(n int, mail, to string) (protocol.MeetingReceipt, protocol.Code) {
			hours++
			got, err := does(w, w.Ask, stranger(n), protocol.NewMeeting{Handle: to, Requester: "Ravi", Email: mail, Purpose: "Yarn.", DurationMin: 30,
				StartsAt: start.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)})
			return got, protocol.CodeOf(err)
		}
		first, code := tries(1, "a@example.org", "asha")
		require.Empty(w.t, code)
		for _, mail := range []string{"b@example.org", "c@example.org"} {
			_, code = tries(1, mail, "asha")
			require.Empty(w.t, code)
		}
		_, code = tries(1, "d@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "three of a network")
		require.NoError(w.t, moves["decline"](w, first))
		_, code = tries(1, "d@example.org", "asha")
		require.Empty(w.t, code, "one that is decided waits no more")

		r := always()
		r.MaxWaiting = 8 // strangers have half of it
		w.settings("asha", r)
		_, code = tries(3, "e@example.org", "asha")
		require.Empty(w.t, code)
		_, code = tries(4, "f@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "as many as the person wants of strangers")
		for n := range 5 {
			_, err := w.asks(protocol.Caller{Standing: protocol.Signed, KeyID: fmt.Sprint("key ", n)}, "z@example.org", start.Add(time.Duration(200+n)*time.Hour))
			require.Equal(w.t, n == 4, err != nil, "known callers have the rest")
		}
		for n := range 4 {
			w.person(fmt.Sprint("p", n))
			w.settings(fmt.Sprint("p", n), always())
		}
		for n := range 7 {
			_, code = tries(1, fmt.Sprintf("g%d@example.org", n), fmt.Sprint("p", n/3))
			require.Empty(w.t, code)
		}
		_, code = tries(1, "h@example.org", "p3")
		require.Equal(w.t, protocol.Conflict, code, "ten of a network on the node")
		_, err := does(w, w.Ask, owner("asha"), protocol.NewMeeting{Handle: "asha", Requester: "A", Email: "a@b.example", Purpose: "p", DurationMin: 30,
			StartsAt: start.Add(9 * time.Hour).Format(time.RFC3339)})
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(err))
	})
}

// TestLimits_Day: how many requests of one network, and to one person, are taken within a day, whatever
// became of them.
func TestLimits_Day(t *testing.T) {
	each(t, false, func(w *world) {
		w.person("bela")
		w.settings("bela", always())
		at := start.Add(240 * time.Hour)
		ask := func(network, n int, to string) protocol.Code {
			got, err := does(w, w.Ask, stranger(network), protocol.NewMeeting{Handle: to, Requester: "Ravi", Email: fmt.Sprintf("r%d@example.org", n), Purpose: "Yarn.",
				DurationMin: 30, StartsAt: at.Format(time.RFC3339)})
			if err == nil {
				require.NoError(w.t, moves["cancel"](w, got))
			}
			return protocol.CodeOf(err)
		}
		for n := range 20 {
			require.Empty(w.t, ask(1, n, []string{"asha", "bela"}[n%2]))
		}
		require.Equal(w.t, protocol.RateLimited, ask(1, 20, "asha"))
		w.pass(24 * time.Hour)
		require.Empty(w.t, ask(1, 21, "asha"))
		require.Empty(w.t, ask(200, 300, "bela"))
	})
}

// TestBlocked: whom the person has blocked, by name, may not ask.
func TestBlocked(t *testing.T) {
	each(t, false, func(w *world) {
		key := protocol.Caller{Standing: protocol.Signed, KeyID: "k1", Network: "n"}
		must.Get(w.asks(key, "a@example.org", start.Add(24*time.Hour)))(w.t)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			b := storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: "asha", Writer: "key:k1", Names: []string{"key:k1"}}
			return tx.ContactBlocks().Insert(ctx, &b)
		}))
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(must.Err(w.asks(key, "b@example.org", start.Add(25*time.Hour)))))
		must.Get(w.asks(stranger(1), "b@example.org", start.Add(25*time.Hour)))(w.t)
	})
}

// TestVerifiedDomain: with requireVerifiedDomain a request needs the signature of a key whose directory is at the domain
// of the mail address; no other standing is enough.
func TestVerifiedDomain(t *testing.T) {
	t.Parallel()
	one(t, func(w *world) {
		rules := always()
		rules.VerifiedDomain = true
		w.settings("asha", rules)
		by := func(level protocol.ProofLevel, subject string) protocol.Caller {
			proof := protocol.AuthorProof{Level: level, Subject: &subject}
			return protocol.Caller{Standing: protocol.Signed, KeyID: "k " + subject, Network: "n " + subject, Proof: proof}
		}
		for what, c := range map[string]protocol.Caller{
			"proof of work": stranger(1), "another site": by(protocol.ByDirectory, "https://agent.example.com"),
			"a site that ends alike": by(protocol.ByDirectory, "https://notexample.org"), "a chain identity": by(protocol.ByChainKey, "https://agent.example.org"),
			"an owner's token": {Standing: protocol.Session, Handle: "bela", Handles: []string{"bela"}},
		} {
			_, err := w.asks(c, "ravi@example.org", start.Add(24*time.Hour))
			require.Equal(t, protocol.ContactRefused, protocol.CodeOf(err), what)
			require.ErrorContains(t, err, "key directory at the domain of the mail address", what)
		}
		for n, subject := range []string{"https://agent.example.org", "https://example.org:8443"} {
			_, err := w.asks(by(protocol.ByDirectory, subject), fmt.Sprintf("ravi%d@Mail.Example.org", n), start.Add(time.Duration(24+n)*time.Hour))
			require.NoError(t, err, subject)
		}
	})
}
