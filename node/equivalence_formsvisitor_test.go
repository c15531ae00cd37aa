package node_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

var (
	shortTexts = []string{"Good cloth", "", strings.Repeat("x", 4100), "two\nlines", "<b>bold</b>", "a\u202eb", "   ", "नमस्ते"}
	oneLine    = []string{"Good cloth", "", strings.Repeat("x", 4100), "<b>bold</b>", "a\u202eb", "   ", "नमस्ते"}
	longTexts  = []string{"About looms.", "", strings.Repeat("long ", 900), "two\nlines", "<script>x</script>", "a\u0007b", "  "}
	addresses  = []string{"", "https://example.org/a", "http://example.org", "javascript:alert(1)", "nonsense"}
	amounts    = []string{"1500", "", "12.345", "-4", "much", "99999999999"}
	smallInts  = []string{"3", "", "0", "-1", "4000", "many", "2.5"}
	someTags   = []string{"", "cloth, silk", "b@d", strings.Repeat("a,", 14) + "z", "cloth"}
	freeLines  = []string{"", "Yes.", strings.Repeat("x", 1100), "two\nlines", "a\u202eb"}
	freeNames  = []string{"", "Kim", strings.Repeat("n", 61)}
	tick       = []string{"", "true"}
	ticked     = []string{"true", ""}
)

// formRows are all forms of the pages.
func formRows() []formRow {
	return slices.Concat(visitorForms(), bidForms(), accountForms(), itemForms(), shopForms(), ownerForms(), operatorForms(), leavingForms())
}

// visitorForms are those of pages that need no account.
func visitorForms() []formRow {
	posted := map[string][]string{"kind": {"offer", "question", "rumour", ""}, "title": oneLine, "body": longTexts, "tags": someTags, "name": freeNames}
	reply := maps.Clone(posted)
	delete(reply, "tags")
	post := func(s *formSide) map[string]string { return map[string]string{"id": s.Post("Looms").ID} }
	parent := func(s *formSide) map[string]string {
		id := s.Post("Looms").ID
		return map[string]string{"id": id, "inReplyTo": id}
	}
	asha := func(*formSide) map[string]string { return map[string]string{"handle": "asha"} }
	meeting := func(state protocol.MeetingState) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string { return s.meeting(state) }
	}
	return []formRow{
		{op: protocol.PostToBoard.Operation, page: "/board", about: func(*formSide) map[string]string { return nil }, fields: posted,
			read: "/api/public/board?limit=3"},
		{op: protocol.PostToBoard.Operation, page: "/board/{id}", about: parent, fields: reply, read: "/api/public/board/{id}"},
		{op: protocol.ReportPost.Operation, page: "/board/{id}", about: post, fields: map[string][]string{"reason": oneLine}, read: "/api/public/board/{id}"},
		{op: protocol.FileComplaint.Operation, page: "/contact", about: func(*formSide) map[string]string { return nil },
			read: "/api/operator/complaints?state=open&limit=100", args: func(_ *formSide, _ map[string]string, args map[string]any) { args["language"] = "en" },
			fields: map[string][]string{"subject": oneLine, "kind": {"privacy", "", "gossip"}, "text": longTexts, "mail": {"", "nobody", "r{n}@example.org"}}},
		{op: protocol.ReadComplaint.Operation, page: "/complaints/{id}", id: "readToken", about: (*formSide).complained,
			fields: map[string][]string{"readToken": {"{given}", "stoa_read_x", ""}}},
		{op: protocol.ConfirmComplaintMail.Operation, page: "/complaints/{id}?ticket={ticket}", about: (*formSide).complained,
			read: "/api/operator/complaints?state=open&limit=100"},
		{op: protocol.ContactAgent.Operation, page: "/@asha", about: asha, read: "/api/owner/threads?handle=asha&limit=3",
			fields: map[string][]string{"message": longTexts, "kind": {"question", "", "spam"}, "name": freeNames}},
		{op: protocol.CheckConversation.Operation, page: "/threads/{threadId}", id: "readToken", about: (*formSide).locked,
			fields: map[string][]string{"readToken": {"{given}", "stoa_read_x", ""}}},
		{op: protocol.ContinueConversation.Operation, page: "/threads/{threadId}", id: "again", about: (*formSide).conversation,
			fields: map[string][]string{"message": longTexts}, read: "/api/owner/threads/{threadId}"},
		{op: protocol.DeleteMessage.Operation, page: "/threads/{threadId}", about: func(s *formSide) map[string]string {
			about := s.conversation()
			var c protocol.Conversation
			s.good("GET", "/api/owner/threads/"+about["threadId"], "", &c)
			about["messageId"] = c.Messages.Items[0].ID
			return about
		}, read: "/api/owner/threads/{threadId}"},
		{op: protocol.RequestMeeting.Operation, page: "/@asha/meet", id: "meet", to: map[string]string{"date": "", "time": ""},
			about: func(s *formSide) map[string]string { takesMeetings(s.d); return asha(s) },
			fields: map[string][]string{"requester": {"Ravi", "", strings.Repeat("n", 81), "a\u202eb"}, "email": {"r{n}@example.org", "", "nobody", "a@b@c"},
				"purpose": longTexts, "timezone": {"Asia/Kolkata", "Europe/Berlin", "Mars/Base"}, "durationMin": {"30", "15"},
				"date": {"{day}", "", "2020-01-01", "soon"}, "time": {"11:00", "", "25:00"}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) { timeOf(typed, "", args, "startsAt") },
			at:   [][2]string{{"/startsAt", "startsAt"}}, read: "/api/owner/meetings?handle=asha&limit=2"},
		{op: protocol.GetMeeting.Operation, page: "/meetings/{id}", id: "statusToken", about: func(s *formSide) map[string]string {
			m := s.meeting(protocol.MeetingSubmitted)
			return map[string]string{"id": m["id"], "given": m["statusToken"]}
		}, fields: map[string][]string{"statusToken": {"{given}", "stoa_read_x", ""}}},
		{op: protocol.CancelMeeting.Operation, page: "/meetings/{id}", about: meeting(protocol.MeetingApproved), read: "/api/owner/meetings/{id}"},
		{op: protocol.PickMeetingTime.Operation, page: "/meetings/{id}", about: meeting(protocol.MeetingProposed), read: "/api/owner/meetings/{id}"},
		{op: protocol.UseMeetingLink.Operation, page: "/meeting-link?ticket={ticket}", id: "id", about: (*formSide).askedByMail,
			fields: map[string][]string{"do": {"confirm"}}, read: "/api/owner/meetings/{id}"},
		{op: protocol.UseMeetingLink.Operation, page: "/meeting-link?ticket={ticket}", id: "stop", about: func(s *formSide) map[string]string {
			return map[string]string{"ticket": s.askedByMail()["ticket"]}
		}, fields: map[string][]string{"do": {"stop"}}},
		{op: protocol.UseDecisionLink.Operation, page: "/meeting-decision?ticket={ticket}", id: "ticket", about: func(s *formSide) map[string]string {
			m := s.meeting(protocol.MeetingSubmitted)
			return map[string]string{"id": m["id"], "ticket": s.link(s.House.Meeting.LinkFor, m["id"])}
		}, fields: map[string][]string{"do": {"approve", "decline"}}, read: "/api/owner/meetings/{id}"},
	}
}

func (s *formSide) complained() map[string]string { return complained(s.House) }

// complained stores a complaint; given is its read token, and the ticket is that of the letter to its mailbox.
func complained(h *nodetest.House) map[string]string {
	given := protocol.NewReadToken()
	c := storage.StoredComplaint{State: protocol.ComplaintReceived, TokenHash: protocol.SecretHash(given), Complainant: "network:x",
		ComplaintDoc: storage.ComplaintDoc{Subject: "other", Kind: "other", Text: "Loud.", Mail: "kim@example.org"}}
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		c.ID, c.CreatedAt, c.DueAt = protocol.NewID(protocol.ComplaintID, tx.Now), tx.Now, tx.Now.Add(time.Hour)
		c.AcknowledgeBy, c.ResolveBy = c.DueAt, c.DueAt
		return tx.Complaints().Insert(ctx, &c)
	}))
	mac := hmac.New(sha256.New, h.Meeting.LinkKey)
	mac.Write([]byte("complaint link\x00" + c.ID + "\x00" + c.Mail))
	return map[string]string{"id": c.ID, "given": given, "ticket": protocol.ReadTokenPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])}
}

// askedByMail stores a request that waits for its mailbox; the ticket is that of the letter.
func (s *formSide) askedByMail() map[string]string {
	m := s.meeting(protocol.MeetingUnconfirmed)
	var stored *storage.StoredMeeting
	require.NoError(s.T, s.DB.Read(s.T.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		stored, err = tx.Meetings().ByID(ctx, m["id"])
		return err
	}))
	name, day := base64.RawURLEncoding.EncodeToString(stored.Mailbox[:]), time.Now().UTC().Truncate(14*24*time.Hour).Format(time.DateOnly)
	mac := hmac.New(sha256.New, s.House.Meeting.LinkKey)
	fmt.Fprintf(mac, "meeting link\x00m\x00%s\x00%s", name, day)
	return map[string]string{"id": m["id"], "ticket": "stoa_read_m" + name + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])}
}

// timeOf joins the fields of a date and a time of day to a time on somebody's clock.
func timeOf(typed map[string]string, row string, args map[string]any, member string) {
	if at := typed["date"+row] + "T" + typed["time"+row]; at != "T" {
		args[member] = at
	}
}

// conversation begins one with asha.
func (s *formSide) conversation() map[string]string {
	var begun protocol.ContactReceipt
	a := s.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`, "Authorization", s.stranger()).Is(201)
	a.Into(&begun)
	return map[string]string{"threadId": begun.ThreadID, "readToken": begun.ReadToken}
}

// stranger is the Authorization of a profile that nobody knows.
func (s *formSide) stranger() string {
	s.strangers++
	return s.Agent(fmt.Sprint("stranger-", s.strangers), nodetest.OpenPolicy)
}

// meeting stores a request to asha for a time that is free.
func (s *formSide) meeting(state protocol.MeetingState) map[string]string {
	starts, err := time.ParseInLocation(time.DateOnly, s.day, protocol.India)
	require.NoError(s.T, err)
	starts = starts.Add(11 * time.Hour)
	if state == protocol.MeetingDone {
		starts = starts.Add(-10 * 24 * time.Hour)
	}
	r, token := nodetest.StoredMeeting(state, starts.UTC())
	if state == protocol.MeetingDone {
		r.DueAt = time.Time{}
	}
	r.Shown = state != protocol.MeetingUnconfirmed
	require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error { return insertFree(s.d, ctx, tx, r) }))
	return map[string]string{"id": r.ID, "statusToken": token, "startsAt": starts.UTC().Format(time.RFC3339)}
}

// link returns the ticket of a notice to asha about a bid or a request.
func (s *formSide) link(of func(context.Context, *storage.Tx, string, string, string) (*protocol.NoticeLink, error), id string) (ticket string) {
	require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		to := storage.NotifySettings{Handle: "asha", Webhook: "https://agent.example/notices", Links: true}
		if err := tx.Profiles().PutNotifySettings(ctx, to); err != nil {
			return err
		}
		link, err := of(ctx, tx, id, "asha", to.Webhook)
		if err == nil {
			ticket = link.Ticket
		}
		return err
	}))
	return ticket
}

// bidForms are those about bids, of both sides, and of their money.
func bidForms() []formRow {
	const own, board = "/api/owner/bids/{id}", "/account/attention"
	link := func(state string) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			args := map[string]any{}
			if state == "claimed" {
				bid(s.d, protocol.DenyBidPayment.Operation, args)
			} else {
				s.d.Reopen(protocol.PayUPI)
				s.good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":3,"fullRefundHours":24,"autoApprove":false}`, nil)
				args["id"] = s.d.NewBid().Bid.ID
				s.good("POST", "/api/owner/bids/"+args["id"].(string)+"/confirm", `{"utr":"`+nodetest.NewUTR()+`"}`, nil)
			}
			id := args["id"].(string)
			return map[string]string{"id": id, "ticket": s.link(s.Attention.LinkFor, id)}
		}
	}
	asha := map[string]string{"handle": "asha"}
	opened := func(s *formSide) map[string]string { s.d.Reopen(protocol.PayUPI); return maps.Clone(asha) }
	categories := func(text string) any {
		var list []map[string]any
		for line := range strings.SplitSeq(text, "\n") {
			name, floor, _ := strings.Cut(line, ":")
			c := map[string]any{"name": strings.TrimSpace(name)}
			if floor = strings.TrimSpace(floor); floor != "" {
				c["floor"] = floor
			}
			list = append(list, c)
		}
		return list
	}
	return []formRow{
		{op: protocol.BidForAttention.Operation, page: "/@asha/board", about: opened, read: "/api/owner/bids?handle=asha&limit=2",
			fields: map[string][]string{"amount": amounts, "message": shortTexts, "name": {"", "Kim"}, "url": addresses}},
		{op: protocol.CheckBid.Operation, page: "/@asha/board", about: opened, fields: map[string][]string{"amount": amounts}},
		{op: protocol.GetBid.Operation, page: "/bids/{id}", id: "statusToken", about: func(s *formSide) map[string]string {
			args := map[string]any{}
			bid(s.d, protocol.GetBid.Operation, args)
			return map[string]string{"id": args["id"].(string), "given": args["statusToken"].(string)}
		}, fields: map[string][]string{"statusToken": {"{given}", "stoa_read_x", ""}}},
		{op: protocol.WithdrawBid.Operation, page: "/bids/{id}", read: own},
		{op: protocol.DisputePayment.Operation, page: "/bids/{id}", read: own, fields: map[string][]string{"utr": {"4{n}", "", "12345", "letters"}}},
		{op: protocol.ClaimPayment.Operation, page: "/pay/{payToken}", id: "claim", read: "/api/owner/bids?handle=asha&limit=1",
			fields: map[string][]string{"utr": {"4{n}", "", "12345", "letters"}}},
		{op: protocol.PressSandbox.Operation, page: "/pay/{payToken}", id: "button", read: "/api/owner/bids?handle=asha&limit=1",
			fields: map[string][]string{"button": {"fail", "pay-late"}}},
		{op: protocol.UseBidLink.Operation, page: "/bid-link?ticket={ticket}", id: "ticket", about: link("claimed"),
			fields: map[string][]string{"do": {"confirm", "deny", "approve"}}, read: own},
		{op: protocol.UseBidLink.Operation, page: "/bid-link?ticket={ticket}", id: "ticket", about: link("live"),
			fields: map[string][]string{"do": {"approve", "deny"}}, read: own},
		{op: protocol.ConfirmBidPayment.Operation, page: board, read: own, about: link("claimed")},
		{op: protocol.DenyBidPayment.Operation, page: board, read: own},
		{op: protocol.ApproveBid.Operation, page: board, read: own, about: link("live")},
		{op: protocol.AnswerBid.Operation, page: board, read: own, fields: map[string][]string{"answer": longTexts, "url": addresses}},
		{op: protocol.RemoveBid.Operation, page: board, read: own, fields: map[string][]string{"reason": oneLine}},
		{op: protocol.MarkRefunded.Operation, page: board, read: "/api/owner/refunds?handle=asha&limit=1", fields: map[string][]string{"reference": oneLine}},
		{op: protocol.PutAttentionBoard.Operation, page: board, about: opened, as: map[string]func(string) any{"categories": categories},
			fields: map[string][]string{"rules": longTexts, "floor": amounts, "step": amounts, "maxBid": append([]string{"9000"}, amounts...), "slots": smallInts,
				"slotDays": smallInts, "protectHours": smallInts, "fullRefundHours": smallInts, "claimHours": smallInts,
				"respondWithinDays": {"", "3", "99"}, "categories": {"", "Yarn: 2000\nLooms", "Yarn: much", "Yarn\nYarn"},
				"accepting": ticked, "autoApprove": ticked, "refundIfNoReply": tick}, read: "/api/owner/attention?handle=asha"},
		{op: protocol.CloseAttentionBoard.Operation, page: board, read: "/api/owner/attention?handle=asha"},
		{op: protocol.PutPaymentAccount.Operation, page: board, about: opened, read: "/api/owner/payment-account?handle=asha",
			as: map[string]func(string) any{"webhookSecrets": func(text string) any { return strings.Fields(text) }},
			fields: map[string][]string{"provider": {"upi", "razorpay", "gold"}, "vpa": {"asha@okbank", "", "nonsense"}, "payeeName": oneLine,
				"legalName": {"", "Asha Rao", strings.Repeat("x", 130)}, "address": {"", "MG Road", longTexts[2]}, "gstin": {"", "29ABCDE1234F1Z5", "x"},
				"gstPercent": {"", "18", "200"}, "keyId": {"", "rzp_test_x", "a b"}, "keySecret": {"", "s", strings.Repeat("s", 201)},
				"webhookSecrets": {"", "a b", "a b c d e f"}}},
		{op: protocol.DeletePaymentAccount.Operation, page: board, read: "/api/owner/payment-account?handle=asha", about: func(s *formSide) map[string]string {
			opened(s)
			s.good("POST", "/api/owner/attention/close", `{"handle":"asha"}`, nil)
			return maps.Clone(asha)
		}},
	}
}

// locked is a conversation that this browser may not read yet.
func (s *formSide) locked() map[string]string {
	c := s.conversation()
	return map[string]string{"threadId": c["threadId"], "given": c["readToken"]}
}
