package meeting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// moves are what may be done to a request.
var moves = map[string]func(w *world, r protocol.MeetingReceipt) error{
	"approve": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.Approve, owner("asha"), decision(r)))
	},
	"decline": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.Decline, owner("asha"), protocol.MeetingRefusal{MeetingDecision: decision(r)}))
	},
	"propose": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.Propose, owner("asha"), protocol.MeetingProposal{
			OwnMeetingRef: ref(r), Times: []string{w.clock().Add(96 * time.Hour).Format(time.RFC3339)},
		}))
	},
	"move": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: w.clock().Add(120 * time.Hour).Format(time.RFC3339)}))
	},
	"cancel own": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.CancelOwn, owner("asha"), decision(r)))
	},
	"no show": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.NoShow, owner("asha"), ref(r)))
	},
	"cancel": func(w *world, r protocol.MeetingReceipt) error {
		return must.Err(does(w, w.Cancel, protocol.Caller{}, input(r)))
	},
	"pick": func(w *world, r protocol.MeetingReceipt) error {
		at := time.Time{}
		if p := w.get(r).Proposals; len(p) > 0 {
			at = p[0].StartsAt
		}
		return must.Err(does(w, w.Pick, protocol.Caller{}, protocol.MeetingPick{MeetingInput: input(r), StartsAt: at}))
	},
	"wait": func(w *world, r protocol.MeetingReceipt) error { w.pass(200 * time.Hour); w.runJobs(); return nil },
}

// TestStates: every arrow leads where contract §5 says, and everything else is a conflict that changes
// nothing.
func TestStates(t *testing.T) {
	ways := map[protocol.MeetingState][]string{ // how a request gets there
		protocol.MeetingSubmitted: {}, protocol.MeetingProposed: {"propose"}, protocol.MeetingApproved: {"approve"}, protocol.MeetingDeclined: {"decline"},
		protocol.MeetingWithdrawn: {"cancel"}, protocol.MeetingExpired: {"wait"}, protocol.MeetingCancelled: {"approve", "cancel"},
		protocol.MeetingDone: {"approve", "wait"}, protocol.MeetingNoShow: {"approve", "wait", "no show"},
	}
	arrows := map[protocol.MeetingState]map[string]protocol.MeetingState{
		protocol.MeetingSubmitted: {"approve": protocol.MeetingApproved, "decline": protocol.MeetingDeclined, "propose": protocol.MeetingProposed,
			"cancel": protocol.MeetingWithdrawn, "wait": protocol.MeetingExpired},
		protocol.MeetingProposed: {"pick": protocol.MeetingApproved, "decline": protocol.MeetingDeclined, "cancel": protocol.MeetingWithdrawn,
			"wait": protocol.MeetingExpired},
		protocol.MeetingApproved: {"approve": protocol.MeetingApproved, "move": protocol.MeetingApproved, "cancel": protocol.MeetingCancelled,
			"cancel own": protocol.MeetingCancelled, "wait": protocol.MeetingDone},
		protocol.MeetingDeclined:  {"decline": protocol.MeetingDeclined},
		protocol.MeetingWithdrawn: {"cancel": protocol.MeetingWithdrawn},
		protocol.MeetingCancelled: {"cancel": protocol.MeetingCancelled, "cancel own": protocol.MeetingCancelled},
		protocol.MeetingDone:      {"no show": protocol.MeetingNoShow},
		protocol.MeetingNoShow:    {"no show": protocol.MeetingNoShow},
	}
	each(t, false, func(w *world) {
		n := 0
		for from, way := range ways {
			for name, do := range moves {
				n++
				r := w.asked(n, w.clock().Add(time.Duration(24+n)*time.Hour).Truncate(time.Minute))
				for _, step := range way {
					require.NoError(w.t, moves[step](w, r), "%s to %s", step, from)
				}
				before := w.get(r)
				require.Equal(w.t, from, before.State)
				err := do(w, r)
				after := w.get(r)
				want, there := arrows[from][name]
				if !there && name != "wait" {
					require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err), "%s of one that is %s", name, from)
					require.Equal(w.t, before, after, "%s of one that is %s changes nothing", name, from)
					continue
				}
				if !there {
					want = from
				}
				require.NoError(w.t, err, "%s of one that is %s", name, from)
				require.Equal(w.t, want, after.State, "%s of one that is %s", name, from)
				if want == from && name != "move" {
					require.Len(w.t, after.History, len(before.History), "%s of one that is %s is no second move", name, from)
				}
				if want != from {
					require.Equal(w.t, want, after.History[len(after.History)-1].State)
				}
				if !slices.Contains([]protocol.MeetingState{protocol.MeetingDone, protocol.MeetingNoShow, protocol.MeetingCancelled, protocol.MeetingDeclined,
					protocol.MeetingWithdrawn, protocol.MeetingExpired}, after.State) { // so that the day is free for the next ones
					_ = moves["cancel"](w, r)
				}
			}
		}
		require.NoError(w.t, w.db.Check(context.Background()))
	})
}

// TestMove_Sequence: a move of an approved meeting raises the sequence, and so does a cancellation.
func TestMove_Sequence(t *testing.T) {
	each(t, false, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.NoError(w.t, moves["approve"](w, r))
		require.Zero(w.t, w.get(r).Sequence)
		require.NoError(w.t, moves["move"](w, r))
		require.NoError(w.t, moves["move"](w, r), "to the same time, which is no move")
		got := w.get(r)
		require.Equal(w.t, 1, got.Sequence)
		require.Equal(w.t, start.Add(120*time.Hour), got.StartsAt)
		require.NoError(w.t, moves["cancel own"](w, r))
		require.Equal(w.t, 2, w.get(r).Sequence)
	})
}

// TestBounds: a start is from 15 minutes to 90 days ahead, to the second (spec §2.13).
func TestBounds(t *testing.T) {
	each(t, false, func(w *world) {
		for i, tt := range []struct {
			name string
			now  time.Duration // of the minute
			at   time.Duration // from the minute
			ok   bool
		}{
			{"15 minutes", 0, 15 * time.Minute, true},
			{"a second less", time.Second, 15 * time.Minute, false},
			{"90 days", 0, 90 * 24 * time.Hour, true},
			{"a minute more", 0, 90*24*time.Hour + time.Minute, false},
			{"a second less than a minute more", 59 * time.Second, 90*24*time.Hour + time.Minute, false},
		} {
			w.now.Store(start.Add(tt.now).UnixMilli())
			_, err := w.asks(stranger(i), fmt.Sprintf("r%d@example.org", i), start.Add(tt.at))
			if tt.ok {
				require.NoError(w.t, err, tt.name)
				continue
			}
			require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), tt.name)
			require.Equal(w.t, "/startsAt", protocol.AsError(err).Faults[0].Pointer, tt.name)
		}
	})
}

var linkIn = func(text string) string {
	_, rest, _ := strings.Cut(text, "ticket=")
	return strings.Fields(rest)[0]
}

// use uses a link.
func (w *world) use(ticket string, do protocol.MeetingLinkDo) error {
	return must.Err(does(w, w.UseLink, protocol.Caller{}, protocol.MeetingLinkUse{MeetingLinkInput: protocol.MeetingLinkInput{Ticket: ticket}, Do: do}))
}

// TestConfirmation: the person sees nothing before the link of the mail was used; the mail has nothing
// that the requester wrote; looking at the link does nothing; it works once.
func TestConfirmation(t *testing.T) {
	each(t, true, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.Equal(w.t, protocol.MeetingUnconfirmed, r.Request.State)
		require.NotContains(w.t, fmt.Sprint(r), "ravi1@", "no address in an answer")
		w.runJobs()
		require.Len(w.t, w.sent, 1)
		l := w.sent[0]
		require.Equal(w.t, "ravi1@example.org", l.To)
		require.NotContains(w.t, l.Text, "Yarn")
		require.NotContains(w.t, l.Text, "Ravi")
		require.Contains(w.t, l.Text, "Asha Rao")
		ticket := linkIn(l.Text)
		list := func() int {
			page := must.Get(does(w, w.List, owner("asha"), protocol.OwnMeetingQuery{}))(w.t)
			return len(page.Items)
		}
		for range 2 {
			shown := must.Get(does(w, w.ReadLink, protocol.Caller{}, protocol.MeetingLinkInput{Ticket: ticket}))(w.t)
			require.Equal(w.t, []protocol.MeetingLinkDo{protocol.MeetingLinkConfirm, protocol.MeetingLinkStop}, shown.Do)
		}
		require.Zero(w.t, list(), "invisible to the person")
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.GetOwn, owner("asha"), ref(r)))))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(moves["approve"](w, r)))
		for _, forged := range []string{ticket[:len(ticket)-1], ticket + "x", "stoa_read_x", "nonsense", strings.Replace(ticket, "read_m", "read_s", 1)} {
			require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(forged, protocol.MeetingLinkConfirm)))
		}
		require.NoError(w.t, w.use(ticket, protocol.MeetingLinkConfirm))
		require.Equal(w.t, protocol.MeetingSubmitted, w.get(r).State)
		require.Equal(w.t, 1, list())
		require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(ticket, protocol.MeetingLinkConfirm)), "once")

		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		require.Len(w.t, w.sent, 2)
		require.Contains(w.t, w.sent[1].Text, "approved")
		require.Contains(w.t, w.sent[1].Text, "Asia/Kolkata")
		own := must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t)
		require.Equal(w.t, protocol.MeetingMailSent, own.Mail)
		require.Equal(w.t, "ravi1@example.org", *own.Email)
	})
}

// TestConfirmation_Dropped: an unconfirmed request is deleted after 24 hours, not a millisecond before.
func TestConfirmation_Dropped(t *testing.T) {
	each(t, true, func(w *world) {
		r := w.asked(1, start.Add(48*time.Hour))
		w.runJobs()
		w.pass(24*time.Hour - time.Millisecond)
		w.runJobs()
		require.Equal(w.t, protocol.MeetingUnconfirmed, w.get(r).State)
		w.pass(time.Millisecond)
		require.Equal(w.t, protocol.Gone, protocol.CodeOf(w.use(linkIn(w.sent[0].Text), protocol.MeetingLinkConfirm)), "also before the job ran")
		w.runJobs()
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.Get, protocol.Caller{}, input(r)))))
	})
}

// TestWarnings: what is to be known about a time is said and refuses nothing; an approved meeting does.
func TestWarnings(t *testing.T) {
	each(t, false, func(w *world) {
		w.settings("asha", protocol.MeetingRules{MaxPerDay: 1})
		at := start.Add(24 * time.Hour) // Tuesday, 10:00 in India
		one, two, night := w.asked(1, at), w.asked(2, at), w.asked(3, at.Add(12*time.Hour))
		own := func(r protocol.MeetingReceipt) protocol.OwnMeeting {
			return must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t)
		}
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOverlaps}, own(one).Warnings, "the other request")
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours}, own(night).Warnings)
		require.NoError(w.t, moves["approve"](w, one))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(moves["approve"](w, two)))
		require.Equal(w.t, protocol.MeetingSubmitted, w.get(two).State)
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours, protocol.WarnDayFull}, own(night).Warnings)
		require.NoError(w.t, moves["approve"](w, night))
		short, err := w.asks(stranger(8), "x@eu.Mailinator.com", at.Add(96*time.Hour))
		require.NoError(w.t, err, "marked, and not refused")
		require.Equal(w.t, []protocol.MeetingWarning{protocol.WarnOutsideHours, protocol.WarnDisposable}, own(short).Warnings)
		w.settings("asha", protocol.MeetingRules{OutsideHours: "refuse"})
		_, err = w.asks(stranger(9), "x@example.org", at.Add(12*time.Hour))
		require.Equal(w.t, "not-open", protocol.AsError(err).Faults[0].Code)
		_, err = w.asks(stranger(9), "x@example.org", at)
		require.Equal(w.t, "not-open", protocol.AsError(err).Faults[0].Code, "the same, whatever the reason")
	})
}

// TestNoOverlap: no two approved meetings of a person overlap, whatever runs at once, at two processes on
// PostgreSQL.
func TestNoOverlap(t *testing.T) {
	t.Parallel()
	seed := storagetest.Seed(t)
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := &atomic.Int64{}
		now.Store(start.UnixMilli())
		one := open(t, c, now, false)
		worlds := []*world{one}
		if c.URL != "" {
			worlds = append(worlds, open(t, c, now, false))
		}
		one.person("asha")
		one.settings("asha", always())
		var made []protocol.MeetingReceipt
		for n := range 16 {
			made = append(made, one.asked(n, start.Add(24*time.Hour+time.Duration(n%4)*10*time.Minute)))
		}
		var all sync.WaitGroup
		for p := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(p)))
				w := worlds[p%len(worlds)]
				times := func() string {
					return start.Add(24*time.Hour + time.Duration(r.IntN(24))*10*time.Minute).Format(time.RFC3339)
				}
				for range storagetest.Rounds(t, 40) {
					m := made[r.IntN(len(made))]
					var err error
					switch r.IntN(6) {
					case 0, 1:
						err = moves["approve"](w, m)
					case 2:
						_, err = does(w, w.Propose, owner("asha"), protocol.MeetingProposal{OwnMeetingRef: ref(m), Times: []string{times()}})
					case 3:
						at := time.Time{}
						if got, e := does(w, w.Get, protocol.Caller{}, input(m)); e == nil && len(got.Proposals) > 0 {
							at = got.Proposals[0].StartsAt
						}
						_, err = does(w, w.Pick, protocol.Caller{}, protocol.MeetingPick{MeetingInput: input(m), StartsAt: at})
					case 4:
						_, err = does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(m), StartsAt: times()})
					case 5:
						if r.IntN(4) == 0 {
							err = moves["cancel"](w, m)
						}
					}
					if code := protocol.CodeOf(err); err != nil && code != protocol.Conflict && code != protocol.Validation {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		approved := []protocol.MeetingRequest{}
		for _, m := range made {
			if got := one.get(m); got.State == protocol.MeetingApproved {
				approved = append(approved, got)
			}
		}
		require.NotEmpty(t, approved)
		for i, a := range approved {
			for _, b := range approved[:i] {
				require.False(t, a.StartsAt.Before(b.EndsAt) && b.StartsAt.Before(a.EndsAt), "%s and %s", a.ID, b.ID)
			}
		}
	})
}

// TestForgetMail: a mail address is deleted 30 days after the meeting.
func TestForgetMail(t *testing.T) {
	each(t, false, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.NoError(w.t, moves["approve"](w, r))
		forget := func() (n int) {
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
				n, err = tx.Meetings().ForgetMail(ctx)
				return err
			}))
			return n
		}
		w.now.Store(start.Add(24*time.Hour + 30*time.Minute + 30*24*time.Hour - time.Millisecond).UnixMilli())
		require.Zero(w.t, forget())
		w.pass(time.Millisecond)
		require.Equal(w.t, 1, forget())
		require.Zero(w.t, forget())
		w.runJobs()
		own := must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t)
		require.Nil(w.t, own.Email)
		require.Equal(w.t, protocol.MeetingDone, own.State)
	})
}

// TestMail_Outcome: the person sees whether the requester got the mail; a temporary failure is tried again
// with the same id, a final one is not, and who wants no mail gets none.
func TestMail_Outcome(t *testing.T) {
	each(t, true, func(w *world) {
		confirmed := func(n int) protocol.MeetingReceipt {
			r := w.asked(n, start.Add(time.Duration(24+n)*time.Hour))
			w.runJobs()
			require.NoError(w.t, w.use(linkIn(w.sent[len(w.sent)-1].Text), protocol.MeetingLinkConfirm))
			return r
		}
		is := func(r protocol.MeetingReceipt, want protocol.MeetingMail) {
			w.t.Helper()
			require.Equal(w.t, want, must.Get(does(w, w.GetOwn, owner("asha"), ref(r)))(w.t).Mail)
		}
		r := confirmed(1)
		w.fail = protocol.Errorf(protocol.Overloaded, "greylisted")
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		is(r, protocol.MeetingMailQueued)
		w.fail = nil
		w.pass(time.Minute)
		w.runJobs()
		is(r, protocol.MeetingMailSent)
		require.Equal(w.t, r.Request.ID+".3", w.sent[len(w.sent)-1].ID)
		n := len(w.sent)
		w.runJobs()
		require.Len(w.t, w.sent, n)

		r = confirmed(2)
		w.fail = protocol.Errorf(protocol.Gone, "no such mailbox")
		require.NoError(w.t, moves["decline"](w, r))
		w.runJobs()
		is(r, protocol.MeetingMailFailed)
		w.fail = nil

		r = confirmed(3)
		text := w.sent[len(w.sent)-1].Text
		require.NoError(w.t, w.use(linkIn(text[strings.LastIndex(text, "no more mail"):]), protocol.MeetingLinkStop))
		require.NoError(w.t, moves["approve"](w, r))
		n = len(w.sent)
		w.runJobs()
		require.Len(w.t, w.sent, n)
		is(r, protocol.MeetingMailNone)
	})
}

// A hook is a receiver of callbacks.
type hook struct {
	bodies [][]byte
	ids    []string
	fail   error
}

func (h *hook) Send(_ context.Context, _, id string, body []byte) error {
	h.ids, h.bodies = append(h.ids, id), append(h.bodies, body)
	return h.fail
}

// TestUpdate: callbackUrl is told of each change, a failed delivery is made again with the same id, and
// none after the receiver is gone.
func TestUpdate(t *testing.T) {
	each(t, false, func(w *world) {
		h := &hook{}
		w.Webhook = h
		r := must.Get(does(w, w.Ask, stranger(1), protocol.NewMeeting{Handle: "asha", Requester: "Ravi", Email: "r@example.org", Purpose: "Yarn.", DurationMin: 30,
			StartsAt: start.Add(24 * time.Hour).Format(time.RFC3339), CallbackURL: "https://agent.example/hook"}))(w.t)
		w.runJobs()
		require.Empty(w.t, h.ids, "the requester knows of the request")
		h.fail = &webhook.Failure{Kind: webhook.ErrRetry, Status: 503}
		require.NoError(w.t, moves["approve"](w, r))
		w.runJobs()
		h.fail = nil
		w.pass(time.Minute)
		w.runJobs()
		require.Equal(w.t, []string{r.Request.ID + "-2", r.Request.ID + "-2"}, h.ids)
		u := must.JSON[protocol.MeetingUpdate](h.bodies[1])(w.t)
		require.Equal(w.t, []any{"meeting.updated", r.Request.ID, protocol.MeetingApproved}, []any{u.Type, u.MeetingID, u.State})
		require.NotContains(w.t, string(h.bodies[1]), "r@example.org")
		h.fail = &webhook.Failure{Kind: webhook.ErrGone, Status: 410}
		require.NoError(w.t, moves["move"](w, r))
		w.runJobs()
		require.NoError(w.t, moves["cancel"](w, r))
		w.runJobs()
		require.Len(w.t, h.ids, 3, "nothing more after 410")
	})
}
