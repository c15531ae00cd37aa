package meeting_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/meeting"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// single is a world on SQLite whose node sends mail, or none.
func single(t *testing.T, mails bool) *world {
	t.Helper()
	var got *world
	one(t, func(w *world) { got = w })
	if !mails {
		got.Mail = func() meeting.Mailer { return nil }
	}
	return got
}

// TestPeople: what the person does with a request, another person and the requester do not.
func TestPeople(t *testing.T) {
	t.Parallel()
	w := single(t, false)
	w.person("ravi")
	r := w.asked(1, start.Add(24*time.Hour))
	later := start.Add(48 * time.Hour).Format(time.RFC3339)
	for name, do := range map[string]func(protocol.Caller) error{
		"read":    func(c protocol.Caller) error { return must.Err(does(w, w.GetOwn, c, ref(r))) },
		"approve": func(c protocol.Caller) error { return must.Err(does(w, w.Approve, c, decision(r))) },
		"decline": func(c protocol.Caller) error {
			return must.Err(does(w, w.Decline, c, protocol.MeetingRefusal{MeetingDecision: decision(r)}))
		},
		"propose": func(c protocol.Caller) error {
			return must.Err(does(w, w.Propose, c, protocol.MeetingProposal{OwnMeetingRef: ref(r), Times: []string{later}}))
		},
		"move": func(c protocol.Caller) error {
			return must.Err(does(w, w.Move, c, protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: later}))
		},
		"cancel":  func(c protocol.Caller) error { return must.Err(does(w, w.CancelOwn, c, decision(r))) },
		"no show": func(c protocol.Caller) error { return must.Err(does(w, w.NoShow, c, ref(r))) },
	} {
		for _, c := range []protocol.Caller{owner("ravi"), stranger(1), {}, {Standing: protocol.Signed, KeyID: "k"}} {
			require.Equal(t, protocol.NotFound, protocol.CodeOf(do(c)), "%s by %s", name, c.ID())
		}
	}
	require.Equal(t, protocol.MeetingSubmitted, w.get(r).State)
	require.Len(t, w.get(r).History, 1)
	require.NoError(t, moves["approve"](w, r))
}

// TestPick: a proposed time is taken while it is ahead and free.
func TestPick(t *testing.T) {
	t.Parallel()
	soon, late := start.Add(24*time.Hour), start.Add(72*time.Hour)
	proposed := func(t *testing.T) (*world, protocol.MeetingReceipt) {
		w := single(t, false)
		r := w.asked(1, start.Add(30*24*time.Hour))
		must.Get(does(w, w.Propose, owner("asha"), protocol.MeetingProposal{OwnMeetingRef: ref(r),
			Times: []string{soon.Format(time.RFC3339), late.Format(time.RFC3339)}}))(t)
		return w, r
	}
	pick := func(w *world, r protocol.MeetingReceipt, at time.Time) error {
		return must.Err(does(w, w.Pick, protocol.Caller{}, protocol.MeetingPick{MeetingInput: input(r), StartsAt: at}))
	}
	for _, tt := range []struct {
		name    string
		arrange func(w *world)
		at      time.Time
		code    protocol.Code
	}{
		{"ahead and free", nil, soon, ""},
		{"one that was not proposed", nil, soon.Add(time.Hour), protocol.Validation},
		{"another meeting is then", func(w *world) { require.NoError(w.t, moves["approve"](w, w.asked(2, soon))) }, soon, protocol.Conflict},
		{"another one overlaps it", func(w *world) {
			require.NoError(w.t, moves["approve"](w, w.asked(2, soon.Add(15*time.Minute))))
		}, soon, protocol.Conflict},
		{"another one waits for the time", func(w *world) { w.asked(2, soon) }, soon, ""},
		{"it is over", func(w *world) { w.pass(25 * time.Hour) }, soon, protocol.Validation},
		{"it begins in less than 15 minutes", func(w *world) { w.pass(24*time.Hour - 14*time.Minute) }, soon, protocol.Validation},
		{"the second is ahead", func(w *world) { w.pass(25 * time.Hour) }, late, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, r := proposed(t)
			if tt.arrange != nil {
				tt.arrange(w)
			}
			require.Equal(t, tt.code, protocol.CodeOf(pick(w, r, tt.at)))
			if tt.code == "" {
				require.Equal(t, protocol.MeetingApproved, w.get(r).State)
				require.Equal(t, tt.at, w.get(r).StartsAt)
				return
			}
			require.Equal(t, protocol.MeetingProposed, w.get(r).State)
		})
	}
}

// macOf is the MAC of a ticket as the node makes it.
func macOf(parts ...string) string {
	h := hmac.New(sha256.New, []byte("key"))
	h.Write([]byte(strings.Join(append([]string{"meeting link"}, parts...), "\x00")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

// TestReaderTicket: the ticket of a mail opens the request whose mailbox it went to, once that is confirmed.
func TestReaderTicket(t *testing.T) {
	t.Parallel()
	w := single(t, true)
	r, other := w.asked(1, start.Add(24*time.Hour)), w.asked(2, start.Add(48*time.Hour))
	w.runJobs()
	require.Len(t, w.sent, 2)
	ticket := func(r protocol.MeetingReceipt, mail string) string {
		id := r.Request.ID
		return protocol.ReadTokenPrefix + "v" + strings.TrimPrefix(id, protocol.MeetingID+"_") + macOf("v", id, mail)
	}
	reads := func(r protocol.MeetingReceipt, token string) protocol.Code {
		_, err := does(w, w.Get, protocol.Caller{}, protocol.MeetingInput{ID: r.Request.ID, StatusToken: token})
		_, bearer := does(w, w.Get, protocol.Caller{ReadToken: token}, protocol.MeetingInput{ID: r.Request.ID})
		require.Equal(t, protocol.CodeOf(err), protocol.CodeOf(bearer))
		return protocol.CodeOf(err)
	}
	mine := ticket(r, "ravi1@example.org")
	require.Equal(t, protocol.NotFound, reads(r, mine), "nobody confirmed the mailbox")
	for _, l := range w.sent {
		require.NoError(t, w.use(linkIn(l.Text), protocol.MeetingLinkConfirm))
	}
	require.Empty(t, reads(r, mine))
	require.Equal(t, protocol.NotFound, reads(other, mine))
	require.Equal(t, protocol.NotFound, reads(r, ticket(other, "ravi2@example.org")))
	require.Equal(t, protocol.NotFound, reads(r, ticket(r, "ravi2@example.org")))
	require.Equal(t, protocol.NotFound, reads(r, other.StatusToken), "the token of another request")
	require.Equal(t, protocol.Gone, protocol.CodeOf(w.use(mine, protocol.MeetingLinkConfirm)), "nor is it a link")
}

// TestDecision_Addresses: the link of a notice decides for who reads the address that the person has, if it is
// confirmed and links are on, while the request is as it was.
func TestDecision_Addresses(t *testing.T) {
	t.Parallel()
	const mail, hook = "asha@example.org", "https://agent.example/notices"
	for _, tt := range []struct {
		name, sent string
		to         storage.NotifySettings
		arrange    string
		ok         bool
	}{
		{"mail", mail, storage.NotifySettings{Mail: mail, Confirmed: true, Links: true}, "", true},
		{"a webhook", hook, storage.NotifySettings{Webhook: hook, Links: true}, "", true},
		{"mail that nobody confirmed", mail, storage.NotifySettings{Mail: mail, Links: true}, "", false},
		{"no links", hook, storage.NotifySettings{Webhook: hook}, "", false},
		{"the former mail", mail, storage.NotifySettings{Mail: "new@example.org", Confirmed: true, Links: true}, "", false},
		{"the former webhook", hook, storage.NotifySettings{Webhook: hook + "/2", Links: true}, "", false},
		{"the person decided otherwise", mail, storage.NotifySettings{Mail: mail, Confirmed: true, Links: true}, "propose", false},
		{"the requester withdrew it", mail, storage.NotifySettings{Mail: mail, Confirmed: true, Links: true}, "cancel", false},
	} {
		w := single(t, false)
		r := w.asked(1, start.Add(24*time.Hour))
		var ticket string
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			link := must.Get(w.LinkFor(ctx, tx, r.Request.ID, "asha", tt.sent))(t)
			ticket, tt.to.Handle = link.Ticket, "asha"
			return tx.Profiles().PutNotifySettings(ctx, tt.to)
		}))
		if tt.arrange != "" {
			require.NoError(t, moves[tt.arrange](w, r))
		}
		before := w.get(r).State
		in := protocol.DecisionLinkInput{Ticket: ticket}
		_, read := does(w, w.ReadDecisionLink, protocol.Caller{}, in)
		_, used := does(w, w.UseDecisionLink, protocol.Caller{}, protocol.DecisionLinkUse{DecisionLinkInput: in, Do: protocol.DecideApprove})
		if tt.ok {
			require.NoError(t, read, tt.name)
			require.NoError(t, used, tt.name)
			require.Equal(t, protocol.MeetingApproved, w.get(r).State, tt.name)
			continue
		}
		require.Equal(t, protocol.Gone, protocol.CodeOf(read), tt.name)
		require.Equal(t, protocol.Gone, protocol.CodeOf(used), tt.name)
		require.Equal(t, before, w.get(r).State, tt.name)
	}
}

// TestConfirmation_Limit: what a link confirms counts with what waits for the person.
func TestConfirmation_Limit(t *testing.T) {
	t.Parallel()
	w := single(t, true)
	rules := always()
	rules.MaxWaiting = 1
	w.settings("asha", rules)
	r, other := w.asked(1, start.Add(24*time.Hour)), w.asked(2, start.Add(48*time.Hour))
	w.runJobs()
	require.Len(t, w.sent, 2)
	require.NoError(t, w.use(linkIn(w.sent[0].Text), protocol.MeetingLinkConfirm))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(w.use(linkIn(w.sent[1].Text), protocol.MeetingLinkConfirm)))
	states := []protocol.MeetingState{w.get(r).State, w.get(other).State}
	require.ElementsMatch(t, []protocol.MeetingState{protocol.MeetingSubmitted, protocol.MeetingUnconfirmed}, states)
	for _, x := range []protocol.MeetingReceipt{r, other} {
		if w.get(x).State == protocol.MeetingSubmitted {
			require.NoError(t, moves["decline"](w, x))
		}
	}
	require.NoError(t, w.use(linkIn(w.sent[1].Text), protocol.MeetingLinkConfirm), "when there is room")
}

// TestConfirmation_Meanwhile: what the person decided after the letter was sent holds for its link.
func TestConfirmation_Meanwhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(context.Context, *storage.Tx, *world) error
		want   protocol.Code
	}{
		"the domain was blocked": {func(ctx context.Context, tx *storage.Tx, w *world) error {
			return tx.ContactBlocks().Insert(ctx, &storage.ContactBlock{ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: "asha", Writer: "domain:example.org",
				Names: []string{"domain:example.org"}})
		}, protocol.ContactRefused},
		"requests are not taken any more": {func(ctx context.Context, tx *storage.Tx, w *world) error {
			return must.Err(w.PutSettings(ctx, tx, owner("asha"), protocol.MeetingDraft{Owned: protocol.Owned{Handle: "asha"}, MeetingRules: always()}))
		}, protocol.Conflict},
	} {
		w := single(t, true)
		r := w.asked(1, start.Add(24*time.Hour))
		w.runJobs()
		require.Len(t, w.sent, 1, name)
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tt.change(ctx, tx, w) }), name)
		require.Equal(t, tt.want, protocol.CodeOf(w.use(linkIn(w.sent[0].Text), protocol.MeetingLinkConfirm)), name)
		require.Equal(t, protocol.MeetingUnconfirmed, w.get(r).State, name)
	}
}
