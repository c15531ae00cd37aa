package storage

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"

	"github.com/stretchr/testify/require"
)

// Every listing is served from an index, whatever its filters: none scans a
// table, and none sorts more than the pages it merges.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	type query struct {
		text string
		args []any
	}
	queries := map[string]query{}
	add := func(name, text string, args ...any) { queries[name] = query{text, args} }
	adds := func(name string, more ...any) func(text string, args []any) {
		return func(text string, args []any) { add(name, text, append(args, more...)...) }
	}
	for _, kind := range []protocol.PostKind{"", protocol.Offer} {
		for _, verified := range []bool{false, true} {
			for _, author := range []string{"", "asha"} {
				for _, tag := range []string{"", "paper"} {
					if author != "" && tag != "" {
						continue // by the index of words
					}
					adds(fmt.Sprintf("board %s %v %s %s", kind, verified, author, tag))(
						boardQuery(protocol.BoardQuery{Kind: kind, VerifiedOnly: verified, Author: author, Tag: tag}, true, 1, 21))
				}
			}
		}
	}
	adds("feed")(feedQuery(nil, false, 1, 21))
	adds("feed of a type")(feedQuery([]protocol.FeedType{protocol.FeedReview}, false, 1, 21))
	adds("feed of this node")(feedQuery([]protocol.FeedType{protocol.FeedReview}, true, 1, 21))
	add("news by its id", originState, "x")
	add("profiles of a state", profileTable.from+hiddenIn, "pending", 0, 0, 21)
	add("who began to join", joinsBegun, "net", 0, 0, 0)
	add("who joined and never came", joinedTable.from+unconfirmedJoins, 0, 20)
	add("what leaves and is hidden", hiddenLeaving, "asha")
	add("invitations of an account", invitationTable.from+invitationsOf, "acc_x", "inv_x", 21)
	add("how many an account invited", invitedSince, "acc_x", 1)
	add("a handle that looks alike", likeHandle, "x")
	add("news of a host within a day", originsToday, "x", 1, 2, 300)
	add("oldest news of a host", originsOver, "x", 3000)
	add("listings of a shop within a day", originFold, "x", 1, 2)
	add("news of an item of the feed", originShown, "x")
	add("news of a shop", originsBy+`actor = ? AND state = ?`, "x", "shown")
	add("news of an identity", originsBy+`agent <> '' AND agent = ? AND state = ?`, "x", "shown")
	add("news of a key", originsBy+`keyid <> '' AND keyid = ? AND state = ?`, "x", "shown")
	add("hidden shops of the log", logShopChanged, "x", 1, 2)
	add("entries taken", logTaken, "x")
	add("tree of a log", logTree, "x")
	add("tile of a tree", treeTile, 1, 0, 2)
	add("leaves of a tree", treeLeaves, 1, 2, 3)
	add("salts of a tree", treeSalts, 1, 2, 3)
	add("entries of new leaves", treeRedacted, 1, 2, 3)
	add("leaves of an object", `SELECT seq FROM log_leaf WHERE `+strings.TrimPrefix(unsaltBoard, unsalt), "x", "y", "x")
	add("leaves of a hidden object", `SELECT seq FROM log_leaf WHERE `+unsaltBefore, 1, "x", 1, 2)
	add("posts of a node since a time", postsOfNode, 1, "x", "y", 50)
	add("what the log says of a shop", agentTold, "x", "y")
	add("shops of a host", agentsOfHost, "x")
	add("shop of another node", agentsBy+`actor = ?`, "x")
	add("shops of an identity elsewhere", agentsBy+`agent <> '' AND agent = ?`, "x")
	add("shops of a page", agentsBySeq+`seq IN (?, ?)`, 1, 2)
	add("posts that are held", postsHeld, "x", 1000)
	add("hosts of which posts are held", hostHeld, "x")
	add("whether a host is followed", hostFollowed, "x")
	add("whether a kind of job is due", kindDue, "process", 1)
	adds("whether a post is known")(postKnown("https://b.example/ap/posts/post_01KAGR8K00ABCDEFGHJKMNPQRS", "post_01KAGR8K00ABCDEFGHJKMNPQRT"))
	text, args := activeBlock(time.Time{}, BlockedAs{protocol.BlockActor: {"x"}, protocol.BlockAgent: {"y", "z"}})
	add("blocks of an author", `SELECT 1 FROM block WHERE `+text+` LIMIT 1`, args...)
	adds("policy of a host")(policyQuery("b.example", time.Time{}))
	add("nodes that are gone", hostsGone, 1)
	add("entries of a directory", entriesDigests, "x")
	add("entry of a directory", entryNamed, "x", "y")
	add("entries found", fmt.Sprintf(entriesBySeq, "seq IN (?, ?)"), 1, 2)
	add("feed behind", feedAfter, 1, 9, 20)
	add("feed place", `SELECT n, id FROM feed WHERE `+byID, 1, 2, "x")
	add("newest of the feed", feedNewest, 9)
	adds("news")(newsQuery([]string{"handle:asha", "agent:x", "key:y"}, 1, 9, 21))
	add("thread by token", threadByToken, []byte{1})
	add("tasks that have changed", movedExchanges, 1)
	add("newest task of a thread", newestExchange, "x")
	for name, f := range map[string]ExchangeFilter{ // a thread has few, which are sorted
		"of a party": {Party: "asha x"},
		"in a state": {Party: "asha x", States: []protocol.ExchangeState{protocol.ExchangeOpen}},
	} {
		where, args := f.where()
		add("tasks "+name, exchangeTable.from+`WHERE `+where+newestExchanges, append(args, 21)...)
	}
	add("new threads", newThreads, "asha", 100)
	add("what waits for an owner", waitsQuery(2), slices.Repeat([]any{"asha", "ravi"}, len(waiting))...)
	add("whether a notice is wanted", noticeWanted, "asha", "asha")
	add("last change of an identity's owner", identityMoveTable.from+`WHERE agent = ?`, "x")
	add("changes of a chain", movesForgotten, "eip155:1:", "eip155:1;", 5)
	add("since when an identity is its owner's", arrived, "x", "0xa")
	add("documents that are due", agentDocumentsDue, 1, 60)
	add("links to an identity", twinsOf, "eip155:1:0xaa:1 ", "eip155:1:0xaa:1!")
	add("links of an identity", twinsOfAgent, "eip155:1:0xaa:1")
	add("links to identities of a chain", twinsOfChain, 1, "eip155:1:", "eip155:1;")
	add("a link to an identity of a registry", twinInRegistry, "eip155:1:0xaa:", "eip155:1:0xaa;")
	add("delegated key", keyDelegated, "eip155:1:0xaa:1 t")
	add("devices of a reader", deviceTable.from+devicesOf, "thread:thr_1")
	add("devices at an endpoint", deviceTable.from+`WHERE endpoint = ?`, "https://push.example/a")
	add("threads of a person elsewhere", threadTable.from+remoteThreadsOf, "asha", "x", 50)
	add("messages of a Note", remoteMessageTable.from+remoteOfNote, "x", 5)
	add("open threads of other servers", remoteOpen, "asha", 200)
	add("threads a person began", remoteBegunBy, "x", 1, 20)
	add("threads a domain began", remoteBegunOf, "x", 1, 200)
	add("refusals to a domain", remoteRefusedOf, "x", 1, 100)
	add("Note that an answer is for", remoteAnswered, "x", 9)
	add("Notes of a person", remoteWritten, "x", 50)
	for _, table := range begunTables {
		add("agents with a "+table, begunList(table), "agent:x:", "agent:x;", 10)
		add(table+" of an agent", begunOf(table), "agent:x@", "agent:xA", "agent:x@y", 100)
	}
	add("counted feedback of a buyer", feedbackNear(2), "wallet:0x2", "mail:1", "eip155:1:0x1:7", "@rao", 1, 2, "rev_x")
	add("used proofs", feedbackUsed(2), "payment 1", "receipt 1", "rev_x")
	add("feedback of a proof", feedbackByProof, "payment 1")
	add("account by wallet", accountByWallet, "0x1")
	add("passkey", passkeyByCredential, []byte{1})
	add("names of credentials", credentialNames, "acc")
	add("passkeys of an account", passkeysOfAccount, "acc_x", 20)
	add("recovery codes of an account", codesOfAccount, "acc_x")
	adds("blocks", "~", 21)(blockQuery("", 1))
	adds("blocks of a kind", "~", 21)(blockQuery(protocol.BlockHost, 1))
	adds("notes", "~", 21)(noteQuery(""))
	adds("notes on a subject", "~", 21)(noteQuery("x"))
	add("moderation log", moderationLogQuery, 9, 21)
	add("last decision", lastDecision, "post_x", "post")
	add("enrolments of a registry", enrolmentsOfRegistry, "eip155:1:0xa:", "eip155:1:0xa;", 10)
	add("review", reviewQuery, 9, 21)
	add("posts of a day", postsOfDay, 1, 2)
	add("reports of a day", reportsOfDay, 1, 2)
	add("agents seen of late", seenSince, 1)
	add("replies made here", repliesHere)
	add("profiles of a day", profilesOfDay, 1, 2)
	add("post by id", `SELECT id FROM post WHERE `+byID, 1, 2, "x")
	add("post by uri", `SELECT id FROM post WHERE uri = ? AND foreign_uri`, "x")
	add("replies", underQuery("in_reply_to"), "x", 1, 2)
	add("thread", underQuery("root"), "x", 1, 2)
	adds("own posts")(ownQuery("asha", 1, 21))
	add("resolution", resolutionQuery, "x", "x", "x", "x", "x", "x", "x")
	add("hidden", `SELECT seq FROM post WHERE state = 'hidden' AND seq < ? ORDER BY seq DESC LIMIT ?`, 1, 2)
	add("orphans", `SELECT seq FROM post WHERE reply_to = ? AND reply_to <> '' AND in_reply_to IS NULL`, "x")
	add("words", `SELECT rowid FROM post_word WHERE post_word MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?`, `"a"`, 1, 2)
	for _, open := range []bool{false, true} {
		from, where, args := versionsOf(walk{}, open, time.Time{})
		add(fmt.Sprint("profiles ", open), `SELECT r.pos, r.seq FROM `+from+` WHERE `+where+` ORDER BY r.pos DESC LIMIT ?`, append(args, 1)...)
		adds(fmt.Sprint("profiles by words ", open), 1)(wordsOf(&search{words: []string{"a"}}, walk{class: 2}, from, where, args))
	}
	add("ended versions", `SELECT pos, until FROM profile_rank WHERE closed_at IS NOT NULL AND closed_at < ? ORDER BY closed_at LIMIT 500`, 1)
	add("merchants to look at", `SELECT seq FROM merchant WHERE closes > 0 AND closes <= ? ORDER BY closes LIMIT 500`, 1)
	add("profile", `SELECT seq FROM profile WHERE handle = ?`, "x")
	add("handles from", `SELECT handle FROM profile WHERE listed AND handle >= ? AND handle < ? ORDER BY handle LIMIT ?`, "x", "y", 1)
	add("created here", createdHere, "x", 1, 2)
	adds("listed posts")(listedPostsQuery([]string{"x", "y"}))
	add("listed profiles", `SELECT handle, updated_at FROM profile WHERE seq > ? AND seq <= ? AND listed ORDER BY seq`, 1, 2)
	add("due probes", dueProbes, 1, 2)
	add("next probe", nextProbe)
	add("asked of a domain", askedOfDomain, "x", 1, 2)
	add("probes of a profile", `SELECT target FROM probe_of WHERE handle = ? AND source = ?`, "x", "profile")
	add("profiles of a probe", `SELECT DISTINCT handle FROM probe_of WHERE target = ? AND handle > ? ORDER BY handle LIMIT ?`, "x", "y", 1)
	add("old sightings", `SELECT handle FROM sighting WHERE at < ? ORDER BY at LIMIT 1000`, 1)
	add("enrolled identity", `SELECT 1 FROM profile WHERE erc8004 = ?`, "x")
	add("seen identity", `SELECT 1 FROM issued WHERE identity = ?`, "x")
	add("log", `SELECT seq FROM log WHERE stream = (SELECT id FROM stream WHERE board = ?) AND seq > ? ORDER BY seq LIMIT ?`, "x", 1, 2)
	add("changed entries", logChanged, "x", 1, 2)
	add("redact", `SELECT seq FROM log WHERE object_id = ?`, "x")
	add("flags of a post", flagsOfPost, "x")
	add("flags of a domain", flagsOfDomain, "x")
	add("boost of a post", boosts, "x", 1, "y")
	add("entries that a post was written by", writtenEntries, "x", "y")
	add("boosted posts", `SELECT seq FROM post WHERE `+boosted+` AND seq < ? ORDER BY seq DESC LIMIT ?`, "x", 1, 2)
	add("count of boosted posts", `SELECT count(*) FROM post WHERE `+boosted, "x")
	add("readers of a post", readersOfPost, "x")
	add("logs that are due", dueLogs)
	add("reactions of an actor in order", reactionsFrom, "x", "y", 1)
	add("blocks by a domain", blockedByOfDomain, "x", 1)
	add("outlets behind a log", someBehind, "x", 1)
	add("logs of boards", `SELECT board FROM stream WHERE NOT of_agent AND id > 0 ORDER BY id`)
	add("whom an actor follows", followedBy, "x", 1)
	add("follows of a host", followersOfHost, "x", 1)
	add("followers behind an inbox", behindInbox, "x", "y")
	add("followers behind an inbox of one of two", notBehindBoth, "x", "y", "z", 1)
	add("reactions of a domain today", reactionsOfDay, "x", 1, 2)
	add("reactions of an actor", reactionsOfActor, "x", 1)
	add("reactions to a post", reactionsOfPost, "x", 1)
	add("quotes of a post", quotesOfPost, "x", 1)
	add("reactions in the order of keys", actorsOfHosts, "x", 1)
	add("reaction by its activity", `SELECT key FROM reaction WHERE actor = ? AND uri = ?`, "x", "y")
	add("author in a thread", threadAuthor, "x", "y", "z")
	add("posts of an actor", postsOfActor, "x", 1)
	add("due jobs", dueJobs, 1, claimLook)
	add("jobs that a process left", `SELECT id FROM job WHERE `+leased)
	add("outlets that a process left", `SELECT inbox FROM outlet WHERE `+leased)
	add("free lanes", freeLanes, claimLook)
	add("next in a lane", nextInLane, 1)
	add("jobs of a state", `SELECT id FROM job WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?`, "dead", 1, 2)
	add("waiting jobs of a kind", jobsDueFirst, "waiting", "x", 1, 2, 3)
	add("ended jobs of a kind", jobsDueLast, "dead", "x", 1, 2, 3)
	add("due jobs of a kind", countDue, "x", 1, 2)
	add("jobs of a kind that failed", retrying, "x")
	add("last dead job of a kind", lastDeath, "x")
	add("traffic", trafficSince, 1, 2)
	adds("audit", 9, 21)(auditQuery("", ""))
	adds("audit of an actor", 9, 21)(auditQuery("x", ""))
	adds("audit of an action", 9, 21)(auditQuery("", "x"))
	add("audit of an action on a subject", auditOf, "x", "y")
	adds("audit of an actor's action", 9, 21)(auditQuery("x", "y"))
	add("jobs of a lane", laneFull, "x", 1)
	add("jobs of a name", jobsWaiting, "x", "y")
	add("dead jobs of a kind", jobsDead, "x")
	add("prune jobs", `SELECT id FROM job WHERE state <> 'waiting' AND done_at < ? ORDER BY done_at LIMIT 1000`, 1)
	add("old news", newsOld, 1)
	add("the tail of the news", newsTailRows, 1, 9, 2000)
	adds("attention boards")(boardsQuery("", 1, 21))
	adds("attention boards of a category")(boardsQuery("yarn", 1, 21))
	add("attention board of a profile", boardByHandle, "x")
	add("slots in use", usedQuery(2), "x", "y", 1)
	add("slots of a board", boardSlots, "x")
	add("unpaid bids without a slot", contested, "x", 1)
	add("live bids", liveBids, "x")
	add("due bids", dueBids, "x", 1, "x", 1)
	add("open bids", openBids, "x", "x")
	add("bid by status token", bidByToken, []byte{1})
	add("bid by pay token", bidByPayToken, []byte{1})
	add("bids on a board", bidsOnBoard, "x", "y", 1)
	add("bids on the node", bidsOnNode, "x", 1)
	add("lapsed bids", bidsLapsed, "x", 1)
	add("denied bids", bidsDenied, "x", "y")
	add("unpaid bids", bidsUnpaid, "x")
	add("oldest unpaid bids", oldestBids, "x", true, 1)
	add("what happened at a place", crowdSince, "x", "y", 1)
	add("slots of strangers", slotsUnknown, "x", 1)
	adds("bids of a board", "y", 21)(bidsQuery("x", ""))
	adds("bids of a board in a state", "y", 21)(bidsQuery("x", protocol.BidLive))
	add("bids to prune", unpaidBids, 1, 1)
	add("meetings of some days", meetingsAgenda, "x", 1, 2, 1, "", 21)
	add("events to prune", `SELECT id FROM pay_event WHERE `+oldPayEvents, 1)
	add("payments of a board", paymentsOfBoard, "x", "y", 21)
	add("refund by its id at the provider", refundByReference, "x", "y")
	add("events of a bid", eventsQuery(EventsOfSubject), "x", "y")
	add("events of a payment", eventsQuery(EventsOfPayment), "x", "y")
	add("events by their id", eventsQuery(EventsNamed), "x")
	add("events with an outcome", eventsWithOutcome, "x", "y", "z")
	add("bids by UTR", bidsByUTR, "x")
	add("bids by a payment's id", bidsByPaymentID, "x")
	add("bids by the bank's reference", bidsByReference, "x")
	add("bids by a refund's reference", bidsByTransfer, "x")
	add("next job of a subject", nextJob, "x", "y", "z")
	add("disputes of a board", countDisputes, "x")
	add("disputed bids", disputedBids, "x", "y", 21)
	add("unconfirmed bids", unconfirmedBids, "x", true, 1, 100)
	add("refunds of a payment", refundsOfPayment, "x")
	add("open refunds", openRefunds, "x", "y", 21)
	add("ledger of a month", ledgerOfMonth, "x", 1, 2)
	add("does a board owe", owing, "x", "x")
	add("does an account owe", paymentAccountOwes, "x", "x", 1, "x", "x", "x", "x", "x", "x", 1, "x", 1)
	for _, state := range []protocol.OrderState{"", protocol.OrderPaid} {
		adds("orders of a till "+string(state), "y", 21)(ordersQuery("x", state))
	}
	add("items by SKU", idsOfSKUs(2), 1, 1, 1, "x", "y")
	add("orders that are due", dueOrders, "x", 1)
	add("unpaid orders of strangers", strangersOrders, "x", 1)
	add("orders that hold a variant", strangersHolding, "x", "y")
	add("orders of a buyer at a shop", ordersAtShop, "x", "y")
	add("orders of a buyer", ordersOnNode, "x")
	add("unpaid orders of a shop", ordersUnpaid, "x")
	add("orders of an hour", ordersUnproved, 1)
	add("orders by UTR", ordersByUTR, "x")
	add("orders to prune", `SELECT id FROM shop_order WHERE `+unpaidOrders, 1)
	add("orders that say who bought", `SELECT id FROM shop_order WHERE `+knownBuyers, 1)
	add("pieces held", heldOf, "x", "y")
	add("does a till owe", tillOwes, "x", "y")
	add("payment account of a webhook", paymentAccountByHook, "x", "y")
	add("payment accounts of a profile", paymentAccountsOf, "x")
	add("busy times of a profile", calendarBusy, "x")
	add("event of a meeting", meetingEvent, "x")
	add("failed events of an account", failedEvents, "x")
	add("meetings that were approved", meetingsAgreed, "x", 1)
	add("feed of meetings", meetingFeed, []byte{1})
	add("settings of meetings", meetingRules, "x")
	add("meeting", meetingByID, "x")
	add("meeting by its token", meetingByToken, []byte{1})
	add("times that are taken", meetingsTaken, "x", 1, 2)
	add("proposed meetings", meetingsProposed, "x", lastID, 21)
	adds("meeting requests to a person", "y", 21)(meetingsQuery("x", ""))
	adds("meeting requests to a person in a state", "y", 21)(meetingsQuery("x", protocol.MeetingSubmitted))
	add("waiting requests of a mailbox", waitingOfMailbox, []byte{1})
	add("waiting requests of a caller", waitingOfCaller, "x", "y")
	add("waiting requests on the node", waitingOnNode, "x")
	add("waiting requests for a person", waitingForPerson, "x")
	add("requests of a caller within a day", askedByCaller, "x", 1)
	add("unconfirmed requests to a person", unconfirmedOf, "x", true, "x", false)
	add("oldest unconfirmed requests to a person", oldestUnconfirmed, "x", false, 1)
	add("coming meeting", comingMeeting, "x", 1)
	add("meetings to prune", `SELECT id FROM meeting WHERE `+meetingsOver, 1)
	add("mail addresses to delete", meetingMailsDue, 1)
	add("mailbox", mailboxByHash, []byte{1})
	add("mailboxes to prune", `SELECT hash FROM meeting_mailbox WHERE `+oldMailboxes, 1)
	add("letter", letterByID, "x")
	add("calendar accounts of a profile", `SELECT id FROM calendar_account WHERE handle = ? ORDER BY id LIMIT ?`, "x", 5)
	add("old callbacks", `SELECT id FROM callback WHERE `+oldCallbacks, "x")
	add("ended tokens", `SELECT id FROM api_token WHERE `+endedTokens, 1)
	add("what peers caused", `SELECT id FROM audit WHERE `+oldTold, 1)
	add("old audit", `SELECT id FROM audit WHERE `+oldAudit, 1)
	for _, e := range expiring {
		add("what has ended of "+e.table, `SELECT `+e.key+` FROM `+e.table+` WHERE `+e.ended(), 1)
	}
	add("prune spent", `SELECT key FROM spent WHERE key > ? AND key <= ? AND until < ?`, []byte{1}, []byte{2}, 1)
	add("idle imports", idleImport, 1)
	add("orphans", `SELECT id FROM post WHERE `+orphans, "x", "y", "z", 1)
	add("outlets of a host", `SELECT inbox FROM outlet WHERE host = ? AND next_at > ?`, "x", 1)
	add("peers", isPeer, "x", "x")
	arrival := arrivalPlans(add)
	// What every bid, every poll and every page of a board asks must use the index that is made for it.
	by := map[string]string{
		"audit of an actor": "audit_actor (actor=?", "audit of an action": "audit_action (<expr>=?",
		"audit of an actor's action": "audit_act", "audit of an action on a subject": "audit_action (<expr>=?",
		"due jobs of a kind": "job_kind", "jobs of a kind that failed": "job_kind", "last dead job of a kind": "job_kind",
		"waiting jobs of a kind": "job_kind", "ended jobs of a kind": "job_kind",
		"jobs that a process left": "job_owner", "outlets that a process left": "outlet_owner",
		"attention boards": "attention_board_listed", "slots in use": "bid_slot", "slots of a board": "bid_slot", "live bids": "bid_state",
		"unpaid bids without a slot": "bid_held", "due bids": "bid_held bid_claimed", "bids on a board": "bid_bidder", "bids on the node": "bid_bidder",
		"lapsed bids": "bid_lapsed", "denied bids": "bid_denied", "unpaid bids": "bid_state", "bids of a board": "bid_board",
		"bids of a board in a state": "bid_state", "bids to prune": "bid_unpaid", "events to prune": "pay_event_done",
		"payments of a board": "payment_board", "refund by its id at the provider": "refund_reference", "refunds of a payment": "refund_payment",
		"events of a bid": "pay_event_bid", "events of a payment": "pay_event_payment", "events by their id": "pay_event_named",
		"events with an outcome": "pay_event_payment", "bids by UTR": "bid_utr", "bids by a payment's id": "payment_named",
		"bids by the bank's reference": "payment_reference", "bids by a refund's reference": "refund_reference", "next job of a subject": "job_lane",
		"disputes of a board": "bid_dispute", "disputed bids": "bid_disputed", "unconfirmed bids": "bid_unconfirmed",
		"open refunds": "refund_open", "ledger of a month": "ledger_board", "does a board owe": "refund_open", "does an account owe": "bid_account refund_open",
		"feed of this node": "feed_local", "shops of a host": "remote_agent_host", "shops of an identity elsewhere": "remote_agent_agent",
		"nodes that are gone":    "subscription_ok",
		"entries of a directory": "ard_entry_source (source=?", "entry of a directory": "ard_entry_source (source=? AND identifier=?)",
		"entries found":               "ard_entry_identifier (identifier=? AND seq<?) subscription_host",
		"what the log says of a shop": "log_object", "news of a host within a day": "feed_origin_host", "oldest news of a host": "feed_origin_host",
		"listings of a shop within a day": "feed_origin_actor", "news of an item of the feed": "feed_origin_item",
		"news of a shop": "feed_origin_actor", "news of an identity": "feed_origin_agent", "news of a key": "feed_origin_key",
		"payment account of a webhook": "sqlite_autoindex_payment_account_2",
		"busy times of a profile":      "calendar_busy_handle", "event of a meeting": "sqlite_autoindex_meeting_event_1",
		"threads of a person elsewhere": "thread_actor (handle=? AND writer=?)",
		"open threads of other servers": "thread_origin_open (<expr>=?", "threads a person began": "thread_actor_day (writer=? AND created_at>?)",
		"threads a domain began": "thread_origin_day (origin=? AND created_at>?)", "refusals to a domain": "remote_refusal_origin (origin=? AND until>?)",
		"Note that an answer is for": "remote_message_thread", "Notes of a person": "thread_actor_day",
		"new threads": "thread_new", "passkeys of an account": "passkey_account (account=?)",
		"recovery codes of an account": "recovery_code_account (account=?)",
		"failed events of an account":  "meeting_event_account", "meetings that were approved": "meeting_agreed",
		"feed of meetings":      "sqlite_autoindex_meeting_feed_2",
		"meetings of some days": "meeting_agenda", "times that are taken": "meeting_time", "proposed meetings": "meeting_state",
		"meeting requests to a person": "meeting_owner", "meeting requests to a person in a state": "meeting_state",
		"waiting requests of a mailbox": "meeting_mailbox_waits", "waiting requests of a caller": "meeting_requester_waits",
		"waiting requests on the node": "meeting_requester_waits", "waiting requests for a person": "meeting_state",
		"requests of a caller within a day": "meeting_requester (requester=? AND asked_at>?)",
		"unconfirmed requests to a person":  "meeting_unconfirmed", "oldest unconfirmed requests to a person": "meeting_unconfirmed",
		"meeting by its token": "meeting_token",
		"coming meeting":       "meeting_time (handle=? AND starts_at>?)", "meetings to prune": "meeting_over", "mail addresses to delete": "meeting_mail",
		"mailboxes to prune": "meeting_mailbox_sent", "calendar accounts of a profile": "calendar_account_handle",
	}
	maps.Copy(by, arrival)
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		for name, indexes := range by {
			plan := strings.Join(explain(t, ctx, tx, queries[name].text, queries[name].args), "\n")
			for index := range strings.FieldsSeq(indexes) {
				require.Contains(t, plan, index, name)
			}
		}
		for name, q := range queries {
			for _, step := range explain(t, ctx, tx, q.text, q.args) {
				// Scans of the merged pages (r, m), of given rows (want), of kinds and sums (k, s) and of freed lanes are meant.
				scan := strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "VIRTUAL TABLE INDEX") && !strings.HasSuffix(step, "lane_free") &&
					!strings.Contains(step, "CONSTANT ROW") && !slices.Contains([]string{"SCAN r", "SCAN k", "SCAN s", "SCAN m", "SCAN want"}, step)
				require.False(t, scan, "%s: %s", name, step)
				if !strings.Contains(q.text, " m ORDER BY") {
					require.NotContains(t, step, "TEMP B-TREE", name)
				}
			}
		}
		return nil
	}))
}

// What is evicted is found by walking an index from the oldest: nothing is sorted.
func TestPlans_Evict(t *testing.T) {
	t.Parallel()
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		for name, s := range stocks {
			for _, last := range []bool{false, true} {
				if name == StockIssued { // once an hour, and not in a write that someone waits for
					continue
				}
				for _, step := range explain(t, ctx, tx, `SELECT `+s.key+` FROM `+s.table+` s WHERE `+s.oldest(last), []any{1}) {
					require.NotContains(t, step, "TEMP B-TREE", name)
					require.True(t, !strings.HasPrefix(step, "SCAN") || strings.Contains(step, "INDEX"), "%s: %s", name, step)
				}
			}
		}
		return nil
	}))
}

func explain(t *testing.T, ctx context.Context, tx *Tx, text string, args []any) []string {
	t.Helper()
	rows, err := tx.query(ctx, "EXPLAIN QUERY PLAN "+text, args...)
	steps, err := collect(rows, err, func(s scanner) (step string, err error) {
		var id, parent, unused int
		err = s.Scan(&id, &parent, &unused, &step)
		return step, err
	})
	require.NoError(t, err, "%s", text)
	require.NotEmpty(t, steps)
	return steps
}

func TestSeqOf(t *testing.T) {
	t.Parallel()
	id := "post_01k9y3v6k8e5w9q2x4z7c1m0ad"
	seq := must.Get(seqOf(id))(t)
	require.Greater(t, must.Get(seqOf("post_01k9y3v6k9e5w9q2x4z7c1m0ad"))(t), seq)
	for _, bad := range []string{
		"", "post_", "post-01k9y3v6k8e5w9q2x4z7c1m0ad", "post_01k9y3v6k8e5w9q2x4z7c1m0aU", "post_00000000000000000000000000", "post_7zzzzzzzzzzzzzzzzzzzzzzzzz",
	} {
		require.Error(t, must.Err(seqOf(bad)), bad)
	}
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"Hand-made", "काग़ज़ हिन्दी", "ÅÄ İ ß", "日本語", "\xff\x00\ue000", strings.Repeat("x", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := string(fold(nil, s))
		for word := range strings.SplitSeq(strings.TrimSuffix(once, " "), " ") {
			require.LessOrEqual(t, len(word), maxWord)
			require.False(t, once != "" && word == "", "an empty word in %q", once)
			require.NotContains(t, word, "\ue000")
		}
		require.Equal(t, queryWords(s), queryWords(strings.ToValidUTF8(s, " ")))
	})
}
