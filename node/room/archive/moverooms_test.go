package archive_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// furnish fills the rooms of asha with marked settings, a live bid, and meeting requests of which one is over.
func furnish(m *nodetest.Mover) {
	t := m.T
	put := func(op *protocol.Operation, args map[string]any) {
		args["handle"] = "asha"
		require.NoError(t, m.Call(op, args, nil, nil), op.Name)
	}
	put(protocol.PutAttentionBoard.Operation, map[string]any{"rules": "rules-mark", "floor": "501", "step": "17", "maxBid": "9001", "slots": 7,
		"slotDays":     21,
		"protectHours": 31, "fullRefundHours": 13, "respondWithinDays": 4, "refundIfNoReply": true, "claimHours": 37, "autoApprove": false,
		"categories": []map[string]any{{"name": "category-mark", "floor": "777"}}})
	put(protocol.PutPaymentAccount.Operation, map[string]any{"provider": "upi", "vpa": "vpa-mark@okbank", "payeeName": "payee-mark",
		"legalName": "legal-mark",
		"address":   "address-mark", "gstPercent": "11"})
	put(protocol.PutMeetingSettings.Operation, map[string]any{"acceptingMeetingRequests": true, "timezone": "Europe/Oslo", "durations": []int{25, 55},
		"usualHours":    []map[string]any{{"day": "sunday", "from": "06:10", "to": "07:20"}},
		"dateOverrides": []map[string]any{{"date": "2031-05-04"}}, "travel": []map[string]any{{"from": "2031-06-01", "to": "2031-06-02",
			"timezone": "Asia/Tokyo"}},
		"slotStep": 35, "bufferBefore": 11, "bufferAfter": 12, "minNoticeMin": 91, "maxDaysAhead": 44, "maxPerDay": 9, "maxPerWeek": 33,
		"pendingBlocksSlot": false,
		"outsideHours":      "refuse", "maxWaiting": 19, "requireVerifiedDomain": true, "showSlots": true, "location": "place-mark {slug}", "reminders": false,
		"questions": []string{"question-mark"}, "policy": "policy-mark"})
	put(protocol.PutNotify.Operation, map[string]any{"mail": "mail-mark@example.org", "webhook": "https://hook-mark.example.org/n",
		"events": []string{"bid.live"}})
	writeIn(m, func(ctx context.Context, tx *storage.Tx) error {
		b := must.Get(tx.AttentionBoards().ByHandle(ctx, "asha"))(t)
		bid := &storage.StoredBid{ID: protocol.NewID(protocol.BidID, tx.Now), Board: b.ID, State: protocol.BidLive, Paise: 600_00, Paid: true,
			Slot: 1, Account: b.Account,
			Bidder: "net:192.0.2.0/24", BidAt: tx.Now, MovedAt: tx.Now, Moves: 1, BidDoc: storage.BidDoc{Author: protocol.Author{Name: "Meera",
				Method: protocol.ByProof},
				Message: "bid-mark", Handle: "asha"}}
		require.NoError(t, tx.Bids().Insert(ctx, bid))
		require.NoError(t, tx.Calendars().Put(ctx, &storage.CalendarAccount{Handle: "asha", Sealed: []byte("sealed-secret"), CalendarDoc: storage.CalendarDoc{
			Address: "https://dav-mark.example.org/dav/", User: "user-mark", Found: []protocol.FoundCalendar{{URL: "https://dav-mark.example.org/dav/home/",
				Name: "calendar-mark"}}, Reads: []string{"https://dav-mark.example.org/dav/home/"}, Writes: "https://dav-mark.example.org/dav/home/"}}))
		for i, state := range []protocol.MeetingState{protocol.MeetingSubmitted, protocol.MeetingDone, protocol.MeetingApproved,
			protocol.MeetingUnconfirmed} {
			at := tx.Now.Add(time.Duration(48-72*(i%2)) * time.Hour)
			r := &storage.StoredMeeting{ID: protocol.NewID(protocol.MeetingID, tx.Now), Handle: "asha", State: state,
				Shown: state != protocol.MeetingUnconfirmed, StartsAt: at,
				EndsAt: at.Add(25 * time.Minute), Requester: "net:192.0.2.0/24", AskedAt: tx.Now, MailUntil: at.Add(protocol.MeetingMailKept),
				MeetingDoc: storage.MeetingDoc{
					Author: protocol.Author{Name: "requester-mark", Method: protocol.ByProof}, Name: "requester-mark",
					Mail: "requester-mark@example.org", Confirmed: true,
					Purpose: "purpose-mark", TimeZone: "Asia/Tokyo", Callback: "https://told.example.org/?key=secret", Visitor: []byte("cookie-secret"),
					Location: "location-mark", Answer: "answer-mark", Sent: protocol.MeetingMailSent, Language: "hi",
					Proposals: []protocol.MeetingTime{{StartsAt: at.Add(time.Hour), EndsAt: at.Add(2 * time.Hour)}},
					Attends: &storage.Attendance{Stamp: tx.Now, MeetingAttendance: protocol.MeetingAttendance{Answer: protocol.AnswerAccepted, At: tx.Now,
						Comment: "comment-mark"}}}}
			r.TokenHash[0] = byte(i + 1)
			require.NoError(t, tx.Meetings().Insert(ctx, r))
			if state == protocol.MeetingUnconfirmed {
				continue
			}
			require.NoError(t, tx.Meetings().Move(ctx, r, "note-mark"))
		}
		return nil
	})
}

// own reads what the owner has in each room.
func ownThings(m *nodetest.Mover) (board protocol.OwnAttentionBoard, rules protocol.MeetingSettings,
	notify protocol.NotifySettings, calendars protocol.CalendarAccounts,
	meetings protocol.Page[protocol.OwnMeeting]) {
	asha := func() map[string]any { return map[string]any{"handle": "asha"} }
	require.NoError(m.T, m.Call(protocol.GetOwnAttentionBoard.Operation, asha(), nil, &board))
	require.NoError(m.T, m.Call(protocol.GetMeetingSettings.Operation, asha(), nil, &rules))
	require.NoError(m.T, m.Call(protocol.GetNotify.Operation, asha(), nil, &notify))
	require.NoError(m.T, m.Call(protocol.ListCalendars.Operation, asha(), nil, &calendars))
	require.NoError(m.T, m.Call(protocol.ListMeetings.Operation, asha(), nil, &meetings))
	return
}

// TestArchive_Rooms: everything that an owner has set in the rooms, and each meeting request, is there after a
// move, through the doors; nothing is open, and nobody is told.
func TestArchive_Rooms(t *testing.T) {
	t.Parallel()
	postgres := func(c *node.Config) {
		if os.Getenv(storagetest.PostgresEnv) != "" {
			c.Database = storagetest.PostgresURL(t)
		}
	}
	plain := func(*node.Config) {}
	for name, ends := range map[string][2]func(*node.Config){"to PostgreSQL": {plain, postgres}, "from PostgreSQL": {postgres, plain}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := nodetest.NewMover(t, ends[0]), nodetest.NewMover(t, ends[1])
			settle(one)
			furnish(one)
			raw := export(one, map[string]any{"handle": "asha"})
			all := nodetest.Unpacked(t, raw)
			for _, secret := range []string{"sealed-secret", "cookie-secret", "key=secret", "192.0.2.0"} {
				require.False(t, strings.Contains(all, secret), secret)
			}
			require.Contains(t, string(nodetest.MembersOf(t, raw)[0].Body), "1 of the bids in bids.ndjson are not over")

			dry := must.Get(two.Imports(raw, map[string]any{"dryRun": true}))(t)
			report := must.Get(two.Imports(raw, nil))(t)
			dry.DryRun = false
			require.Equal(t, report, dry)
			notes := strings.Join(report.Notes, "\n")
			for _, note := range []string{"the attention board is closed here", "(upi vpa-mark@okbank)", "meeting requests are closed here", "passwords",
				"meeting requests that wait stay with", "approved and not over stay with", "bids that are not over", "notices are mailed again"} {
				require.Contains(t, notes, note)
			}
			require.Equal(t, count(3, 0, 0), report.Meetings)
			require.Equal(t, count(0, 0, 1), report.Bids)
			require.Equal(t, 3, report.Posts.New, "the rest is taken")
			for _, mark := range []string{"payee-mark", "legal-mark", "address-mark", `"gstPercent": "11"`, "bid-mark"} {
				require.True(t, strings.Contains(all, mark), mark)
			}

			board, rules, notify, calendars, meetings := ownThings(one)
			board2, rules2, notify2, calendars2, meetings2 := ownThings(two)
			require.False(t, board2.Open)
			require.False(t, board2.Accepting)
			require.Equal(t, board.Rules, board2.Rules)
			require.Equal(t, []any{board.Floor, board.Step, board.MaxBid, board.Slots, board.SlotDays, board.ProtectHours, board.FullRefundHours,
				board.RespondWithinDays,
				board.RefundIfNoReply, board.ClaimHours, board.Categories, board.AutoApprove},
				[]any{board2.Floor, board2.Step, board2.MaxBid, board2.Slots, board2.SlotDays, board2.ProtectHours, board2.FullRefundHours,
					board2.RespondWithinDays,
					board2.RefundIfNoReply, board2.ClaimHours, board2.Categories, board2.AutoApprove})
			var account protocol.PaymentAccount
			require.NoError(t, two.Call(protocol.GetPaymentAccount.Operation, map[string]any{"handle": "asha"}, nil, &account))
			require.Nil(t, account.Provider)

			require.True(t, rules.Accepting)
			rules.Accepting, rules.UpdatedAt = false, rules2.UpdatedAt
			require.Equal(t, rules, rules2)
			require.Equal(t, "policy-mark", rules2.Policy)
			notify.MailConfirmed, notify.MailOffered, notify.Links = notify2.MailConfirmed, notify2.MailOffered, notify2.Links
			require.Equal(t, notify, notify2)
			require.False(t, notify2.MailConfirmed)

			require.Len(t, calendars2.Items, 1)
			c, was := calendars2.Items[0], calendars.Items[0]
			require.Equal(t, protocol.CalendarNoPassword, *c.LastError)
			require.Equal(t, []any{was.Address, was.User, was.Calendars, was.Reads, was.Writes}, []any{c.Address, c.User, c.Calendars, c.Reads, c.Writes})

			require.Len(t, meetings2.Items, 3)
			for i, r := range meetings2.Items {
				was := meetings.Items[i]
				require.Equal(t, []any{was.ID, was.Requester, was.Purpose, was.StartsAt, was.EndsAt, was.TimeZone, was.Proposals, was.Answer,
					was.CreatedAt, was.Email, was.Confirmed,
					was.Mail, was.Attendance}, []any{r.ID, r.Requester, r.Purpose, r.StartsAt, r.EndsAt, r.TimeZone, r.Proposals, r.Answer,
					r.CreatedAt, r.Email, r.Confirmed,
					r.Mail, r.Attendance})
				require.Equal(t, was.History, r.History[:len(was.History)])
				require.Equal(t, map[protocol.MeetingState]protocol.MeetingState{"submitted": "expired", "approved": "expired",
					"done": "done"}[was.State], r.State)
				require.Equal(t, protocol.CalendarNone, r.Calendar.State)
			}
			require.NotContains(t, get(two, "/api/public/agents/asha"), `"meetings":"`)
			require.Equal(t, protocol.NotFound, protocol.CodeOf(two.CallWith("", protocol.ReadAttentionBoard.Operation,
				map[string]any{"handle": "asha"}, nil, nil)))
			writeIn(two, func(ctx context.Context, tx *storage.Tx) error {
				require.True(t, must.Get(tx.AttentionBoards().ByHandle(ctx, "asha"))(t).Terms.Accepting)
				for _, r := range meetings2.Items {
					stored := must.Get(tx.Meetings().ByID(ctx, r.ID))(t)
					require.Equal(t, []any{"location-mark", "hi", "", "", 0}, []any{stored.Location, stored.Language, stored.Callback, stored.By,
						len(stored.Visitor)})
				}
				jobs, err := tx.Jobs().List(ctx, "", "", protocol.MaxLimit, "")
				for _, j := range jobs.Items {
					require.False(t, strings.HasPrefix(string(j.Kind), "meeting") || strings.HasPrefix(string(j.Kind), "calendar"), j.Kind)
				}
				return err
			})
			again := must.Get(two.Imports(raw, nil))(t)
			require.Equal(t, count(0, 3, 0), again.Meetings)
			require.NoError(t, two.DB.Check(t.Context()))
			onward := nodetest.Unpacked(t, export(two, map[string]any{"handle": "asha"}))
			for _, mark := range []string{"rules-mark", "category-mark", "policy-mark", "question-mark", "user-mark", "calendar-mark", "purpose-mark",
				"note-mark", "comment-mark"} {
				require.True(t, strings.Contains(onward, mark), mark)
			}
		})
	}
}
