package meeting_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// TestLimits_Mail: the limits of mail to one mailbox, over all requesters (facts/meetings §8).
func TestLimits_Mail(t *testing.T) {
	t.Parallel()
	each(t, true, func(w *world) {
		w.person("bela")
		w.settings("bela", always())
		at := start.Add(80 * 24 * time.Hour)
		tries := func(n int, mail string) protocol.Code {
			_, err := w.asks(stranger(n), mail, at)
			w.runJobs()
			return protocol.CodeOf(err)
		}
		first, err := w.asks(stranger(1), "victim@gmail.com", at)
		require.NoError(w.t, err)
		w.runJobs()
		require.Equal(w.t, protocol.Conflict, tries(2, "Vic.Tim+tag@googlemail.com"), "the same mailbox waits already")
		_, err = does(w, w.Ask, stranger(20), protocol.NewMeeting{Handle: "bela", Requester: "Ravi", Email: "vicTim+bela@gmail.com", Purpose: "Yarn.",
			DurationMin: 30, StartsAt: at.Format(time.RFC3339)})
		require.Equal(w.t, protocol.RateLimited, protocol.CodeOf(err), "nor by a request to another person")
		require.Len(w.t, w.sent, 1)
		require.NoError(w.t, moves["cancel"](w, first))
		require.Equal(w.t, protocol.RateLimited, tries(3, "victim@gmail.com"), "one mail within 24 hours")
		w.pass(24*time.Hour - time.Millisecond)
		require.Equal(w.t, protocol.RateLimited, tries(4, "victim@gmail.com"))
		w.pass(time.Millisecond)
		for n := range 2 {
			require.Empty(w.t, tries(5+n, "victim@gmail.com"))
			w.pass(24 * time.Hour)
			w.runJobs()
		}
		require.Equal(w.t, protocol.Conflict, tries(8, "victim@gmail.com"), "three until a link is used")
		require.Len(w.t, w.sent, 3)

		require.Empty(w.t, tries(9, "other@example.org"))
		stop := w.sent[len(w.sent)-1].Text
		stop = linkIn(stop[strings.LastIndex(stop, "no more mail"):])
		require.NoError(w.t, w.use(stop, protocol.MeetingLinkStop))
		require.NoError(w.t, w.use(stop, protocol.MeetingLinkStop), "again, which changes nothing")
		w.pass(48 * time.Hour)
		w.runJobs()
		require.Equal(w.t, protocol.ContactRefused, tries(10, "other+x@example.org"), "never mail me again")

		w.PerHour = 2
		require.Empty(w.t, tries(11, "a@example.org"))
		require.Empty(w.t, tries(12, "b@example.org"))
		require.Equal(w.t, protocol.RateLimited, tries(13, "c@example.org"), "the node's limit of an hour")
		w.pass(time.Hour)
		require.Empty(w.t, tries(14, "c@example.org"))
	})
}

// TestLimits_Waiting: how many requests of one mailbox, one network and of everybody may wait.
func TestLimits_Waiting(t *testing.T) {
	t.Parallel()
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
		_, code = tries(2, "A+x@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "one of a mailbox")
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
		r.MaxWaiting = 4
		w.settings("asha", r)
		_, code = tries(3, "e@example.org", "asha")
		require.Empty(w.t, code)
		_, code = tries(4, "f@example.org", "asha")
		require.Equal(w.t, protocol.Conflict, code, "as many as the person wants")
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
	t.Parallel()
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
		for n := range 99 {
			require.Empty(w.t, ask(2+n, 100+n, "asha"))
		}
		require.Equal(w.t, protocol.RateLimited, ask(200, 300, "asha"))
		require.Empty(w.t, ask(200, 300, "bela"))
	})
}

// TestBlocked: whom the person has blocked, by name, may not ask.
func TestBlocked(t *testing.T) {
	t.Parallel()
	each(t, false, func(w *world) {
		key := protocol.Caller{Standing: protocol.Signed, KeyID: "k1", Network: "n"}
		_, err := w.asks(key, "a@example.org", start.Add(24*time.Hour))
		require.NoError(w.t, err)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			b := storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: "asha", Writer: "key:k1", Names: []string{"key:k1"}}
			return tx.ContactBlocks().Insert(ctx, &b)
		}))
		_, err = w.asks(key, "b@example.org", start.Add(25*time.Hour))
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(err))
		_, err = w.asks(stranger(1), "b@example.org", start.Add(25*time.Hour))
		require.NoError(w.t, err)
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
