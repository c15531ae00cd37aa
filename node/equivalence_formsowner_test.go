package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// ownerForms are those of a profile, its inbox, its meetings and calendars, its notices and keys.
func ownerForms() []formRow {
	const meetings, calendars, offers = "/account/meetings/{id}", "/account/meetings/calendars?handle=asha", "/account/offers?handle=asha"
	const one, mine, thread = "/api/owner/meetings/{id}", "/api/owner/calendars?handle=asha", "/api/owner/threads/{threadId}"
	asha := func(*formSide) map[string]string { return map[string]string{"handle": "asha"} }
	bare := func(s *formSide) map[string]string { // nothing is offered or needed
		s.good("PUT", "/api/owner/profile", `{"handle":"asha","name":"Asha","kind":"person","contactPolicy":`+nodetest.OpenPolicy+`}`, nil)
		return asha(s)
	}
	inbox := func(s *formSide) map[string]string { // the page marks it as read
		about := s.conversation()
		s.good("POST", "/api/owner/threads/"+about["threadId"]+"/read", `{}`, nil)
		return about
	}
	followed := func(s *formSide) map[string]string {
		followers(s.House, "asha", 1)
		return map[string]string{"handle": "asha", "actor": "https://social.example/users/0"}
	}
	meeting := func(state protocol.MeetingState) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			m := s.meeting(state)
			return map[string]string{"id": m["id"]}
		}
	}
	capability := map[string][]string{"name": oneLine, "description": longTexts, "tags": someTags, "input": {"", "yarn", shortTexts[2]}, "output": {"",
		"cloth", shortTexts[2]},
		"endpoint": addresses, "pricing-model": {"", "fixed", "free", "barter"}, "pricing-amount": {"", "120.50", "much", "-1"},
		"pricing-currency": {"", "INR", "rupees"}, "pricing-note": {"", "per metre", strings.Repeat("x", 121)}}
	prices := map[string]string{"pricing-model": "pricing.model", "pricing-amount": "pricing.amount", "pricing-currency": "pricing.currency",
		"pricing-note": "pricing.note"}
	priced := func(_ *formSide, typed map[string]string, args map[string]any) {
		if typed["pricing-model"] == "" {
			delete(args, "pricing")
		}
	}
	number := func(text string) any {
		var n float64
		if _, err := fmt.Sscanf(text, "%g", &n); err != nil {
			return text
		}
		return n
	}
	withID := func(fields map[string][]string, ids ...string) map[string][]string {
		all := map[string][]string{"id": ids}
		for name, v := range fields {
			all[name] = v
		}
		return all
	}
	need := map[string][]string{"description": longTexts, "tags": someTags}
	answer := map[string][]string{"answer": freeLines}
	clock := map[string]string{"date": "", "time": ""}
	return []formRow{
		{op: protocol.PutOwnProfile.Operation, page: "/account/profile?handle=asha", about: asha, read: "/api/owner/profile?handle=asha",
			to: map[string]string{"agents": "contactPolicy.outsideAgentsWithIdentity", "anonymous": "contactPolicy.anonymous", "kinds": "contactPolicy.kinds",
				"responseTime": "contactPolicy.responseTime"},
			as: map[string]func(string) any{"kinds": func(text string) any { return listOf(text) }, "languages": codes, "regions": codes},
			fields: map[string][]string{"name": oneLine, "headline": oneLine, "description": longTexts, "tags": someTags, "languages": {"English", "", "e!",
				"Hindi, English"},
				"regions": {"", "Karnataka", "Nowhere"}, "timezone": {"Asia/Kolkata", "", "Mars/Base"}, "agents": ticked, "anonymous": ticked, "kinds": {"",
					"question,support"},
				"responseTime": {"", "a day", strings.Repeat("x", 81)}, "listed": tick},
			args: func(s *formSide, typed map[string]string, args map[string]any) {
				policy := map[string]any{"outsideAgentsWithIdentity": typed["agents"] != "", "anonymous": typed["anonymous"] != ""}
				if was, ok := args["contactPolicy"].(map[string]any); ok {
					for _, name := range []string{"kinds", "responseTime"} {
						if was[name] != nil {
							policy[name] = was[name]
						}
					}
				}
				args["contactPolicy"], args["kind"] = policy, "person"
			}},
		{op: protocol.PutCapability.Operation, page: offers, id: "put_capability-asha", about: bare, fields: withID(capability, "weave", "spin", "Bad Id"),
			to: prices,
			as: map[string]func(string) any{"pricing-amount": number}, args: priced, read: "/api/owner/capabilities?handle=asha"},
		{op: protocol.PutCapability.Operation, page: offers, fields: capability, to: prices, as: map[string]func(string) any{"pricing-amount": number}, args: priced,
			about: func(s *formSide) map[string]string {
				s.good("PUT", "/api/owner/capabilities/weave-cloth", `{"name":"x","description":"x"}`, nil)
				return map[string]string{"handle": "asha", "id": "weave-cloth"}
			}, read: "/api/owner/capabilities?handle=asha"},
		{op: protocol.DeleteCapability.Operation, page: offers, read: "/api/owner/capabilities?handle=asha"},
		{op: protocol.PutNeed.Operation, page: offers, id: "put_need-asha", about: bare, fields: withID(need, "wool", "silk", "Bad Id", "x"),
			read: "/api/owner/needs?handle=asha"},
		{op: protocol.PutNeed.Operation, page: offers, fields: need, read: "/api/owner/needs?handle=asha", about: func(s *formSide) map[string]string {
			s.good("PUT", "/api/owner/needs/cotton-yarn", `{"description":"x"}`, nil)
			return map[string]string{"handle": "asha", "id": "cotton-yarn"}
		}},
		{op: protocol.DeleteNeed.Operation, page: offers, read: "/api/owner/needs?handle=asha"},
		{op: protocol.PutNotify.Operation, page: "/account/notices?handle=asha", about: asha, read: "/api/owner/notify?handle=asha",
			fields: map[string][]string{"webhook": addresses, "mail": {"", "asha@example.org", "not mail"}, "events": {"", "post.hidden", "post.hidden,thread.begun"}}},
		{op: protocol.ConfirmMail.Operation, page: "/account/notices?handle=asha", read: "/api/owner/notify?handle=asha", never: "the code is only in a mail",
			about: func(s *formSide) map[string]string {
				s.good("PUT", "/api/owner/notify", `{"handle":"asha","mail":"asha@example.org"}`, nil)
				return asha(s)
			}, fields: map[string][]string{"code": {strings.Repeat("x", 32), "short", ""}}},
		{op: protocol.RemoveFollower.Operation, page: "/account/followers?handle=asha", read: "/api/owner/followers?handle=asha", about: followed},
		{op: protocol.MakeKey.Operation, page: "/account/keys?handle=asha", about: asha, read: "/api/owner/keys?handle=asha"},
		{op: protocol.RetireKey.Operation, page: "/account/keys?handle=asha", read: "/api/owner/keys?handle=asha"},
		{op: protocol.DropIdentity.Operation, page: "/account/keys?handle=asha", read: "/api/owner/identity?handle=asha"},
		{op: protocol.ConnectIdentity.Operation, page: "/account/keys?handle=asha", read: "/api/owner/identity?handle=asha",
			never: "the node reads no chain: TestSignIn_Ethereum connects", about: func(s *formSide) map[string]string {
				s.Web.Registries = []web.Registry{{ChainID: 1, Address: "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"}}
				return asha(s)
			}, fields: map[string][]string{"number": {"7", "", "many"}}, to: map[string]string{"number": "erc8004"},
			as: map[string]func(string) any{"number": func(text string) any { return "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:" + text }}},

		{op: protocol.AnswerThread.Operation, page: "/account/threads/{threadId}", about: inbox, fields: map[string][]string{"message": longTexts}, read: thread},
		{op: protocol.CloseThread.Operation, page: "/account/threads/{threadId}", about: inbox, read: thread},
		{op: protocol.BlockWriter.Operation, page: "/account/threads/{threadId}", about: inbox, fields: map[string][]string{"note": {"", "spam",
			strings.Repeat("x", 301)}},
			read: "/api/owner/blocked-writers?handle=asha&limit=2"},
		{op: protocol.UnblockWriter.Operation, page: "/account/threads/{threadId}", read: "/api/owner/blocked-writers?handle=asha&limit=2",
			about: func(s *formSide) map[string]string {
				var block protocol.BlockedWriter
				about := inbox(s)
				s.good("POST", "/api/owner/threads/"+about["threadId"]+"/block", `{}`, &block)
				return map[string]string{"threadId": about["threadId"], "id": block.ID}
			}, show: func(s *formSide, about map[string]string) *nodetest.Page {
				f := formRow{op: protocol.BlockWriter.Operation, page: "/account/threads/{threadId}"}
				return f.press(s, about)
			}},

		{op: protocol.PutMeetingSettings.Operation, page: "/account/meetings/settings?handle=asha", about: asha, read: "/api/owner/meeting-settings?handle=asha",
			to: map[string]string{"hours-monday": "", "hours-sunday": "", "dateOverrides": "", "travel": ""},
			as: map[string]func(string) any{"questions": func(text string) any { return strings.Split(text, "\n") }, "durations": func(text string) any {
				var list []any
				for _, part := range listOf(text) {
					list = append(list, number(part))
				}
				return list
			}},
			fields: map[string][]string{"timezone": {"Asia/Kolkata", "", "Mars/Base"}, "location": {"", "https://meet.example/a", strings.Repeat("x", 600)},
				"policy":    longTexts,
				"durations": {"30", "15, 45", "", "1", "many"}, "questions": {"", "How much?", "a\nb\nc\nd"}, "bufferBefore": {"", "10", "999", "many"},
				"bufferAfter": {"", "10", "999"}, "slotStep": {"", "15", "4"}, "minNoticeMin": {"", "60", "1"}, "maxDaysAhead": {"", "30", "0", "91"},
				"maxPerDay": {"", "5", "0"}, "maxPerWeek": {"", "9", "501"}, "maxWaiting": {"", "50", "101"}, "outsideHours": {"mark", "refuse"},
				"hours-monday": {"", "10:00-12:00, 14:00-18:00", "noon", "12:00-10:00"}, "hours-sunday": {"", "10:00-12:00"},
				"dateOverrides": {"", "2030-12-25 closed", "2030-12-26 10:00-12:00", "soon closed"}, "travel": {"", "2030-12-01 to 2030-12-05 Europe/Berlin",
					"2030-12-01 to 2030-12-05 Mars"},
				"acceptingMeetingRequests": ticked, "showSlots": tick, "pendingBlocksSlot": ticked, "reminders": ticked, "requireVerifiedDomain": tick},
			at: [][2]string{{`/usualHours.*`, "hours-*"}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				hours := []any{}
				window := func(text string) map[string]any {
					from, to, _ := strings.Cut(text, "-")
					if len(from) == 4 && to == "" {
						return map[string]any{"from": from + ":00", "to": ""}
					}
					return map[string]any{"from": from, "to": to}
				}
				for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
					text, is := typed["hours-"+day]
					if !is && day != "saturday" {
						text = "10:00-18:00"
					}
					for _, part := range listOf(text) {
						w := window(part)
						w["day"] = day
						hours = append(hours, w)
					}
				}
				args["usualHours"] = hours
				if date, rest, _ := strings.Cut(typed["dateOverrides"], " "); date != "" {
					over := map[string]any{"date": date}
					if rest != "closed" {
						over["windows"] = []any{window(rest)}
					}
					args["dateOverrides"] = []any{over}
				}
				if parts := strings.Fields(typed["travel"]); len(parts) == 4 {
					args["travel"] = []any{map[string]any{"from": parts[0], "to": parts[2], "timezone": parts[3]}}
				}
			}},
		{op: protocol.ApproveMeeting.Operation, page: meetings, about: meeting(protocol.MeetingSubmitted), fields: answer, read: one},
		{op: protocol.DeclineMeeting.Operation, page: meetings, about: meeting(protocol.MeetingSubmitted), read: one,
			fields: map[string][]string{"answer": freeLines, "block": {"none", "nobody", "none"}}},
		{op: protocol.ProposeMeetingTimes.Operation, page: meetings, about: meeting(protocol.MeetingSubmitted), read: one,
			to: map[string]string{"date-1": "", "time-1": "", "date-2": "", "time-2": ""}, at: [][2]string{{`/times/.*`, "times-*"}},
			fields: map[string][]string{"date-1": {"{day}", "", "2020-01-01"}, "time-1": {"14:00", "", "25:00"}, "date-2": {"", "{day}"}, "time-2": {"", "15:00"},
				"answer": freeLines},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				times := []any{}
				for _, row := range []string{"-1", "-2"} {
					at := map[string]any{}
					if timeOf(typed, row, at, "at"); at["at"] != nil {
						times = append(times, at["at"])
					}
				}
				args["times"], args["timezone"] = times, "Asia/Kolkata"
			}},
		{op: protocol.MoveMeeting.Operation, page: meetings, about: meeting(protocol.MeetingApproved), read: one, to: clock, at: [][2]string{{"/startsAt",
			"startsAt"}},
			fields: map[string][]string{"date": {"{day}", "", "2020-01-01"}, "time": {"14:00", "", "25:00"}, "durationMin": {"30", "45", "1", "many", ""},
				"answer": freeLines},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				args["timezone"], args["startsAt"] = "Asia/Kolkata", ""
				timeOf(typed, "", args, "startsAt")
			}},
		{op: protocol.CancelOwnMeeting.Operation, page: meetings, about: meeting(protocol.MeetingApproved), fields: answer, read: one},
		{op: protocol.MarkNoShow.Operation, page: meetings, about: meeting(protocol.MeetingDone), read: one},
		{op: protocol.UnblockWriter.Operation, page: "/account/meetings/settings?handle=asha", read: "/api/owner/blocked-writers?handle=asha&limit=2",
			about: func(s *formSide) map[string]string {
				m := s.meeting(protocol.MeetingSubmitted)
				s.good("POST", "/api/owner/meetings/"+m["id"]+"/decline", `{"block":"mailbox"}`, nil)
				var page protocol.Page[protocol.BlockedWriter]
				s.good("GET", "/api/owner/blocked-writers?handle=asha&limit=100", "", &page)
				i := slices.IndexFunc(page.Items, func(b protocol.BlockedWriter) bool { return b.KnownBy == protocol.ByMailbox })
				return map[string]string{"id": page.Items[i].ID}
			}},

		{op: protocol.ConnectCalendar.Operation, page: calendars, id: "connect_calendar", read: mine,
			fields: map[string][]string{"address": append([]string{"https://cal.example.org/"}, addresses...), "user": {"asha", "", "a:b"}, "password": {"secret",
				"", strings.Repeat("p", 501)}}},
		{op: protocol.ConnectCalendar.Operation, page: calendars, read: mine, about: func(s *formSide) map[string]string {
			args := map[string]any{"id": "cal_x"}
			ownThing(s.d, protocol.CheckCalendar.Operation, args)
			return map[string]string{"handle": "asha", "id": word(args["id"]), "address": "https://cal.example.org/", "user": "asha"}
		}, fields: map[string][]string{"password": {"secret", "", strings.Repeat("p", 501)}}},
		{op: protocol.CheckCalendar.Operation, page: calendars, read: mine},
		{op: protocol.ChooseCalendars.Operation, page: calendars, read: mine, fields: map[string][]string{"reads": {"https://cal.example.org/asha/", ""},
			"writes": {"https://cal.example.org/asha/", ""}, "create": {"", "Meetings", strings.Repeat("x", 81)}},
			args: func(_ *formSide, typed map[string]string, args map[string]any) {
				if strings.TrimSpace(typed["create"]) != "" { // the form has one choice: a new calendar instead of a found one
					delete(args, "writes")
				}
			}},
		{op: protocol.DisconnectCalendar.Operation, page: calendars, read: mine},
		{op: protocol.MakeMeetingFeed.Operation, page: calendars, about: asha, read: mine},
		{op: protocol.DeleteMeetingFeed.Operation, page: calendars, read: mine, about: func(s *formSide) map[string]string {
			s.good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, nil)
			return asha(s)
		}},
	}
}

// operatorForms are those of an operator.
func operatorForms() []formRow {
	const page, queue, notes = "/account/node/", "/account/node/queue", "/api/operator/notes?limit=2"
	const post, peers, blocks, limits = "/api/public/board/{id} /api/operator/audit?limit=1", "/api/operator/peers", "/api/operator/blocks?limit=2",
		"/api/operator/limits"
	reported := func(s *formSide) map[string]string {
		var p protocol.Post
		s.strangers++ // each writes from a network of its own, which is blocked
		a := s.From(fmt.Sprintf("198.18.%d.7", s.strangers%250), "POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", s.Proof("board")).Is(201)
		a.Into(&p)
		id := p.ID
		s.Report("203.0.113.7", id)
		return map[string]string{"id": id, "at": id}
	}
	foreign := func(s *formSide) map[string]string {
		s.strangers++
		id := s.Receive(fmt.Sprintf("https://b%d.example/ap/posts/1", s.strangers), protocol.Author{Name: "B", Node: new("b.example"),
			Actor: new("https://b.example/ap/agents/b"), Method: protocol.ByFederation}, "Tickets", "Cheap.")
		s.Report("203.0.113.7", id)
		return map[string]string{"id": id, "at": id}
	}
	decided := func(op *protocol.Operation) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			about := reported(s)
			s.operate(op, map[string]any{"id": about["id"]}, nil)
			return about
		}
	}
	why := map[string][]string{"reason": {"", "spam", strings.Repeat("x", 301), "two\u202ewords"}, "note": {"", "seen", strings.Repeat("x", 1001)}}
	block := map[string][]string{"reason": why["reason"], "note": why["note"], "hours": {"24", "", "168"}}
	undo := func(done string) string { return queue + "?done=" + done + "&of={id}" }
	peer := func(s *formSide) map[string]string {
		s.followed()
		return map[string]string{"url": "https://n2.example/ap/board"}
	}
	conflicting := func(s *formSide) map[string]string {
		s.followed()
		require.NoError(s.T, s.DB.Write(s.T.Context(), nodetest.ConflictOf("https://n2.example/ap/board")))
		return map[string]string{"url": "https://n2.example/ap/board"}
	}
	blocked := func(s *formSide) map[string]string {
		var b protocol.Block
		s.strangers++
		s.operate(protocol.AddBlock.Operation, map[string]any{"kind": "host", "value": fmt.Sprintf("s%d.example", s.strangers)}, &b)
		return map[string]string{"id": b.ID}
	}
	noted := func(s *formSide) map[string]string {
		var n struct{ ID string }
		about := reported(s)
		s.operate(protocol.AddNote.Operation, map[string]any{"subject": about["id"], "text": "seen"}, &n)
		return map[string]string{"id": n.ID}
	}
	newcomer := func(s *formSide) map[string]string {
		s.strangers++
		handle := fmt.Sprintf("newcomer-%d", s.strangers)
		require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{State: protocol.ProfilePending,
				Draft: protocol.ProfileDraft{Handle: handle, Name: "Newcomer", Kind: protocol.Person}})
			return err
		}))
		return map[string]string{"handle": handle, "decision": "refuse"}
	}
	const directories = "/api/operator/directories"
	listed := func(s *formSide) map[string]string {
		const address = "https://listed.example/ard"
		s.operate(protocol.FollowDirectory.Operation, map[string]any{"url": address}, nil)
		return map[string]string{"url": address}
	}
	const reviews, hidden = page + "reviews", "/api/operator/reviews?limit=2 /api/operator/audit?limit=1"
	review := func(hidden bool) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			id := protocol.HideReview.Example.(protocol.ReviewDecision).ID
			require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Feedbacks().Insert(ctx, storage.Feedback{ID: id, Agent: "eip155:1:0x00000000000000000000000000000000000000aa:1", Client: "0x1",
					At: tx.Now, State: storage.FeedbackUncounted, Reason: protocol.NoProof})
				require.NoError(s.T, err)
				if hidden {
					return tx.Feedbacks().Hide(ctx, id, &tx.Now, "")
				}
				return tx.Feedbacks().Hide(ctx, id, nil, "")
			}))
			return map[string]string{"id": id}
		}
	}
	none := func(*formSide) map[string]string { return nil }
	opened := func(at string, more ...string) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			var made protocol.OpenedAccount
			s.operate(protocol.OpenAccount.Operation, map[string]any{"name": "Meera"}, &made)
			about := map[string]string{"account": made.Account.ID, at: made.Account.ID}
			for i := 0; i < len(more); i += 2 {
				about[more[i]] = more[i+1]
			}
			return about
		}
	}
	const holder = "/api/operator/profiles/{handle} /api/public/moderation-log?limit=1"
	shown := func(suspended bool) func(*formSide) map[string]string {
		return func(s *formSide) map[string]string {
			s.strangers++
			handle := fmt.Sprintf("meera%d", s.strangers)
			s.PutProfile([]byte(`{"handle":"` + handle + `","name":"Meera","kind":"person"}`))
			if suspended {
				s.operate(protocol.SuspendProfile.Operation, map[string]any{"handle": handle, "reason": "spam"}, nil)
			}
			return map[string]string{"handle": handle, "at": handle}
		}
	}
	rates := []string{"2.5", "", "0", "-1", "many", "10000000"}
	job := func(s *formSide) map[string]string {
		return map[string]string{"id": fmt.Sprint(s.Dead("no such host", storage.MailJob)[0])}
	}
	return []formRow{
		{op: protocol.HidePost.Operation, page: queue, about: reported, fields: why, read: post},
		{op: protocol.DismissReports.Operation, page: queue, about: reported, fields: why, read: post},
		{op: protocol.RestorePost.Operation, page: queue + "?state=hidden", about: decided(protocol.HidePost.Operation), fields: why, read: post},
		{op: protocol.RestorePost.Operation, page: undo("hide_post"), about: decided(protocol.HidePost.Operation), read: post},
		{op: protocol.HidePost.Operation, page: undo("restore_post"), about: reported, read: post},
		{op: protocol.ReopenReports.Operation, page: undo("dismiss_reports"), about: decided(protocol.DismissReports.Operation), read: post},
		{op: protocol.ForwardReport.Operation, page: queue, about: foreign, read: post,
			fields: map[string][]string{"comment": {"Sells counterfeit tickets.", "", strings.Repeat("x", 501), "two\u202ewords"}}},
		{op: protocol.RemovePost.Operation, page: queue, about: reported, fields: map[string][]string{"reason": why["reason"]}, read: post},
		{op: protocol.AddNote.Operation, page: queue, about: func(s *formSide) map[string]string { return map[string]string{"subject": reported(s)["id"]} },
			fields: map[string][]string{"text": {"seen", "", " ", strings.Repeat("x", 1001), "two\nlines"}}, read: notes},
		{op: protocol.DeleteNote.Operation, page: queue, about: noted, read: notes},
		{op: protocol.OpenAccount.Operation, page: page + "accounts", id: "open", about: none, read: "/api/operator/accounts?limit=2",
			fields: map[string][]string{"name": {"Meera", "", strings.Repeat("n", 81), "two\u202ewords"}, "mail": {"", "nobody", "m{n}@example.org"},
				"role": {"owner", "operator", "king"}}},
		{op: protocol.MakeSignInLink.Operation, page: page + "accounts", about: opened("at"), read: "/api/operator/audit?limit=1"},
		{op: protocol.MakeArchiveLink.Operation, page: page + "accounts?q={handle}", about: shown(false), read: "/api/operator/audit?limit=1"},
		{op: protocol.SetRole.Operation, page: page + "accounts", about: opened("at", "role", "operator"), read: "/api/operator/accounts?limit=1"},
		{op: protocol.SignOut.Operation, page: page + "accounts", about: opened("at", "forget", "true"), read: "/api/operator/audit?limit=1"},
		{op: protocol.SuspendProfile.Operation, page: page + "accounts?q={handle}", about: shown(false), read: holder,
			fields: map[string][]string{"reason": {"sells what is forbidden", "", strings.Repeat("x", 301), "two\u202ewords"}}},
		{op: protocol.LiftSuspension.Operation, page: page + "accounts?q={handle}", about: shown(true), read: holder},
		{op: protocol.LiftSuspension.Operation, page: page + "accounts?done=suspend_profile&of={handle}", about: shown(true), read: holder},
		{op: protocol.AnswerComplaint.Operation, page: page + "complaints", read: "/api/operator/complaints?state=open&limit=100",
			about: func(s *formSide) map[string]string {
				id := s.complained()["id"]
				return map[string]string{"id": id, "at": id}
			},
			fields: map[string][]string{"answer": {"", "It is hidden.", strings.Repeat("x", 4001), "two\u202ewords"}, "done": {"", "true"}}},
		{op: protocol.HideReview.Operation, page: reviews, about: review(false), read: hidden,
			fields: map[string][]string{"id": {protocol.HideReview.Example.(protocol.ReviewDecision).ID, "rev_x"}, "reason": why["reason"]}},
		{op: protocol.DecideJoining.Operation, page: page + "joining", about: newcomer, read: "/api/operator/joining",
			fields: map[string][]string{"reason": {"No such shop.", ""}}},
		{op: protocol.DecideJoining.Operation, page: page + "joining", about: func(s *formSide) map[string]string {
			about := newcomer(s)
			about["decision"] = "approve"
			return about
		}, read: "/api/operator/joining"},
		{op: protocol.RestoreReview.Operation, page: reviews, about: review(true), read: hidden},
		{op: protocol.RestoreReview.Operation, page: reviews + "?done=hide_review&of={id}", about: review(true), read: hidden},
		{op: protocol.HideReview.Operation, page: reviews + "?done=restore_review&of={id}", about: review(false), read: hidden},
		{op: protocol.AddBlock.Operation, page: queue, about: func(s *formSide) map[string]string { return map[string]string{"post": reported(s)["id"]} },
			fields: block, read: blocks},
		{op: protocol.LiftBlock.Operation, page: queue + "?done=add_node_block&of={id}", about: blocked, read: blocks},
		{op: protocol.LiftBlock.Operation, page: page + "blocks", about: blocked, read: blocks},
		{op: protocol.AddBlock.Operation, page: page + "blocks", about: none, read: blocks, fields: map[string][]string{"kind": {"network", "host", "handle", "key"},
			"value": {"198.51.100.7", "spam.example", "", "203.0.113.0/24", "nobody"}, "reason": why["reason"], "note": why["note"], "hours": {"24", "", "168"}}},
		{op: protocol.SetLimits.Operation, page: page + "blocks", about: none, read: limits,
			fields: map[string][]string{"readRate": {"900000"}, "writeRate": {"900000", "", "-1", "many", "10000000"}, "identityRate": append([]string{"900000"},
				rates[1:]...),
				"proofLevel": {"0", "8", "x"}}},
		{op: protocol.ResetLimits.Operation, page: page + "blocks", read: limits, about: func(s *formSide) map[string]string {
			s.operate(protocol.SetLimits.Operation, map[string]any{"writeRate": 900000}, nil)
			return nil
		}},
		{op: protocol.LookAgain.Operation, page: page + "health", about: none},
		{op: protocol.FollowPeer.Operation, page: page + "peers", about: none, fields: map[string][]string{"url": {"https://n{n}.example", "",
			"not an address", "http://"}}, read: peers},
		{op: protocol.UnfollowPeer.Operation, page: page + "peers", about: peer, read: peers},
		{op: protocol.RetryPeer.Operation, page: page + "peers", about: peer, read: peers},
		{op: protocol.RereadPeer.Operation, page: page + "peers", about: conflicting, read: peers},
		{op: protocol.AddBlock.Operation, page: page + "peers", read: blocks, about: func(s *formSide) map[string]string {
			s.followed()
			return map[string]string{"kind": "host", "value": "n2.example"}
		}},
		{op: protocol.LiftBlock.Operation, page: page + "peers?done=add_node_block&of={id}", about: blocked, read: blocks},
		{op: protocol.SetPeerPolicy.Operation, page: page + "peers", id: "policy", about: none, read: peers,
			fields: map[string][]string{"host": {"spam.example", "", "no host"}, "policy": {"silence", "trusted", "reject"}, "note": why["note"]}},
		{op: protocol.SetPeerPolicy.Operation, page: page + "peers", read: peers, about: func(s *formSide) map[string]string {
			s.operate(protocol.SetPeerPolicy.Operation, map[string]any{"host": "bad.example", "policy": "silence"}, nil)
			return map[string]string{"host": "bad.example", "policy": "none"}
		}},
		{op: protocol.FollowDirectory.Operation, page: page + "peers", id: "directory", about: none, read: directories,
			fields: map[string][]string{"url": {"https://d{n}.example/ai-catalog.json", "", "http://d.example", "https://10.0.0.1/ard"}}},
		{op: protocol.FollowDirectory.Operation, page: page + "peers", about: listed, read: directories},
		{op: protocol.UnfollowDirectory.Operation, page: page + "peers", about: listed, read: directories},
		{op: protocol.FollowDirectory.Operation, page: page + "peers?done=unfollow_directory&of={url}", about: listed, read: directories},
		{op: protocol.UnfollowDirectory.Operation, page: page + "peers?done=follow_directory&of={url}", about: listed, read: directories},
		{op: protocol.RequeueJob.Operation, page: page + "jobs", about: job, read: "/api/operator/jobs?limit=2"},
		{op: protocol.DropJob.Operation, page: page + "jobs", about: job, read: "/api/operator/jobs?limit=2"},
	}
}

// operate does an operator's operation that succeeds.
func (s *formSide) operate(op *protocol.Operation, in map[string]any, into any) {
	s.T.Helper()
	a := formRow{op: op, page: "/account/node"}.byHTTP(s, in, nil)
	require.Less(s.T, a.Code, 300, "%s: %s", op.Name, a.Body)
	if into != nil {
		a.Into(into)
	}
}

// followed is a board that this node follows, which does not answer.
func (s *formSide) followed() {
	s.T.Helper()
	require.NoError(s.T, s.DB.Write(s.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Subscriptions().Put(ctx, storage.Subscription{Board: "https://n2.example/ap/board", Host: "n2.example", State: storage.SubscriptionAccepted,
			LastSeq: 41, CheckedAt: tx.Now, NextAt: tx.Now, Failures: 3, LastError: "dial tcp: connection refused"})
	}))
}
