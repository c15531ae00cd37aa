package archive

import (
	"database/sql"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// carried says where in an archive each column is that has an owner's data: by table, columns, and the
// member with its field. A column after a slash is a field of a JSON document.
var carried = map[string]map[string]string{
	"profile": {"handle": "manifest.json handle", "draft": "profile.json draft", "erc8004": "profile.json erc8004", "key_hash": "profile.json keyid",
		"created_at": "profile.json createdAt", "updated_at": "profile.json updatedAt", "wish": "profile.json unlisted",
		"attention": "rooms.json attention.open", "meetings": "rooms.json meetings.open"},
	"merchant":     {"record": "merchant.json record", "updated_at": "merchant.json updatedAt"},
	"picture_use":  {"sku": "pictures.ndjson sku", "doc": "pictures.ndjson alt"},
	"picture_size": {"body": "pictures.ndjson jpeg"},
	"item":         {"doc": "items.ndjson name", "sku": "items.ndjson sku", "pos": "items.ndjson sku"},
	"notify":       {"mail": "notify.json mail", "webhook": "notify.json webhook", "events": "notify.json events"},
	"agent_key": {"public_jwk": "keys.ndjson jwk", "thumbprint": "keys.ndjson jwk", "sealed": "private-keys.age", "created_at": "keys.ndjson createdAt",
		"retired_at": "keys.ndjson retiredAt", "identity": "keys.ndjson identity", "on_chain": "keys.ndjson onChain"},
	"post": {"id": "posts.ndjson id", "uri": "posts.ndjson uri", "kind": "posts.ndjson kind", "state": "posts.ndjson state", "reason": "posts.ndjson reason",
		"title": "posts.ndjson title", "body": "posts.ndjson body", "tags": "posts.ndjson tags", "in_reply_to": "posts.ndjson replyTo",
		"reply_to": "posts.ndjson replyTo",
		"board":    "posts.ndjson board", "author_name": "posts.ndjson author.name", "author_claimed": "posts.ndjson author.name",
		"author_handle": "posts.ndjson author.handle", "author_node": "posts.ndjson author.node", "author_actor": "posts.ndjson author.actor",
		"author_erc8004": "posts.ndjson author.erc8004", "author_method": "posts.ndjson author.method", "author_keyid": "posts.ndjson author.keyid",
		"verified": "posts.ndjson author.verified", "created_at": "posts.ndjson createdAt", "evidence": "posts.ndjson evidence",
		"statement": "posts.ndjson statement", "edited_at": "posts.ndjson editedAt"},
	"post_revision": {"title": "posts.ndjson revisions.title", "body": "posts.ndjson revisions.body", "warning": "posts.ndjson revisions.contentWarning",
		"written_at": "posts.ndjson revisions.writtenAt", "n": "posts.ndjson revisions"},
	"thread": {"id": "threads.ndjson thread.id", "kind": "threads.ndjson thread.kind", "state": "threads.ndjson thread.state",
		"writer": "threads.ndjson thread.writer", "author": "threads.ndjson thread.author", "token_hash": "threads.ndjson thread.tokenHash",
		"callback": "threads.ndjson thread.callback", "messages": "threads.ndjson thread.messages", "unread": "threads.ndjson thread.unread",
		"unseen": "threads.ndjson thread.unseen", "created_at": "threads.ndjson thread.createdAt", "updated_at": "threads.ndjson thread.updatedAt",
		"closed_at": "threads.ndjson thread.closedAt", "closed_by": "threads.ndjson thread.closedBy", "writer_handle": "written.ndjson thread.id"},
	"thread_message": {"id": "threads.ndjson message.id", "n": "threads.ndjson message.n", "side": "threads.ndjson message.from",
		"author": "threads.ndjson message.author", "text": "threads.ndjson message.text", "at": "threads.ndjson message.createdAt"},
	"client_message": {"client_id": "threads.ndjson message.clientId", "n": "threads.ndjson message.n"},
	"callback": {"id": "threads.ndjson callback.id", "n": "threads.ndjson callback.n", "url": "threads.ndjson callback.url",
		"state":    "threads.ndjson callback.state",
		"attempts": "threads.ndjson callback.attempts", "status": "threads.ndjson callback.status", "last_error": "threads.ndjson callback.lastError",
		"created_at": "threads.ndjson callback.createdAt"},
	"contact_block": {"id": "blocks.ndjson id", "writer": "blocks.ndjson writer", "author": "blocks.ndjson author", "thread_id": "blocks.ndjson threadId",
		"note": "blocks.ndjson note", "at": "blocks.ndjson at"},
	"contact_block_name": {"name": "blocks.ndjson names"},
	"attention_board":    {"open": "rooms.json attention.open", "updated_at": "rooms.json attention.updatedAt"},
	"attention_board.doc": {"rules": "rooms.json attention.draft.rules", "floor": "rooms.json attention.draft.floor",
		"step":   "rooms.json attention.draft.step",
		"maxBid": "rooms.json attention.draft.maxBid", "slots": "rooms.json attention.draft.slots", "slotDays": "rooms.json attention.draft.slotDays",
		"protectHours": "rooms.json attention.draft.protectHours", "fullRefundHours": "rooms.json attention.draft.fullRefundHours",
		"respondWithinDays": "rooms.json attention.draft.respondWithinDays", "refundIfNoReply": "rooms.json attention.draft.refundIfNoReply",
		"claimHours": "rooms.json attention.draft.claimHours", "categories": "rooms.json attention.draft.categories",
		"accepting": "rooms.json attention.draft.accepting", "autoApprove": "rooms.json attention.draft.autoApprove"},
	"payment_account": {"provider": "rooms.json paymentAccount.provider"},
	"payment_account.doc": {"vpa": "rooms.json paymentAccount.vpa", "payeeName": "rooms.json paymentAccount.payeeName",
		"keyId":     "rooms.json paymentAccount.keyId",
		"legalName": "rooms.json paymentAccount.legalName", "address": "rooms.json paymentAccount.address", "gstin": "rooms.json paymentAccount.gstin",
		"gstPercent": "rooms.json paymentAccount.gstPercent"},
	"bid": {"id": "bids.ndjson id", "state": "bids.ndjson state", "paise": "bids.ndjson paise", "test": "bids.ndjson test", "denied": "bids.ndjson denied",
		"paid": "bids.ndjson payments", "utr": "bids.ndjson utr", "bid_at": "bids.ndjson createdAt",
		"writer_handle": "written.ndjson bid.id"},
	"bid.doc": {"author": "bids.ndjson author", "message": "bids.ndjson message", "url": "bids.ndjson url", "category": "bids.ndjson category",
		"liveAt": "bids.ndjson liveAt", "endsAt": "bids.ndjson endsAt", "answer": "bids.ndjson answer", "answerUrl": "bids.ndjson answerUrl",
		"reason": "bids.ndjson reason", "answeredAt": "bids.ndjson answeredAt", "disputedAt": "bids.ndjson disputedAt"},
	"bid_move": {"state": "bids.ndjson moves.state", "at": "bids.ndjson moves.at", "note": "bids.ndjson moves.note", "n": "bids.ndjson moves"},
	"payment": {"id": "bids.ndjson payments.id", "bid": "bids.ndjson id", "provider": "bids.ndjson payments.provider",
		"payment_id": "bids.ndjson payments.paymentId",
		"reference":  "bids.ndjson payments.reference", "paise": "bids.ndjson payments.paise", "currency": "bids.ndjson payments.currency",
		"placed": "bids.ndjson payments.placed", "test": "bids.ndjson payments.test", "paid_at": "bids.ndjson payments.paidAt",
		"at": "bids.ndjson payments.at"},
	"refund": {"id": "bids.ndjson refunds.id", "bid": "bids.ndjson id", "payment": "bids.ndjson refunds.payment", "paise": "bids.ndjson refunds.paise",
		"why": "bids.ndjson refunds.why", "state": "bids.ndjson refunds.state", "reference": "bids.ndjson refunds.reference",
		"created_at": "bids.ndjson refunds.createdAt", "done_at": "bids.ndjson refunds.doneAt", "currency": "bids.ndjson payments.currency"},
	"receipt_no": {"doc": "bids.ndjson receipt", "year": "bids.ndjson receipt", "n": "bids.ndjson receipt", "payment": "bids.ndjson payments.id",
		"at": "bids.ndjson receipt"},
	"meeting_rules": {"doc": "rooms.json meetings.rules", "updated_at": "rooms.json meetings.updatedAt"},
	"meeting": {"id": "meetings.ndjson id", "state": "meetings.ndjson state", "starts_at": "meetings.ndjson startsAt", "ends_at": "meetings.ndjson endsAt",
		"asked_at": "meetings.ndjson createdAt", "moved_at": "meetings.ndjson history.at", "moves": "meetings.ndjson history",
		"sequence": "meetings.ndjson sequence", "writer_handle": "written.ndjson meeting.id"},
	"meeting.doc": {"author": "meetings.ndjson author", "name": "meetings.ndjson requester", "mail": "meetings.ndjson email",
		"confirmed": "meetings.ndjson emailConfirmed", "purpose": "meetings.ndjson purpose", "timezone": "meetings.ndjson timezone",
		"proposals": "meetings.ndjson proposals", "location": "meetings.ndjson location", "answer": "meetings.ndjson answer",
		"gaveWay": "meetings.ndjson gaveWay",
		"sent":    "meetings.ndjson mail", "language": "meetings.ndjson language", "attends": "meetings.ndjson attendance",
		"history": "meetings.ndjson history"},
	"calendar_account": {"created_at": "rooms.json calendars.createdAt"},
	"calendar_account.doc": {"address": "rooms.json calendars.address", "user": "rooms.json calendars.user", "found": "rooms.json calendars.calendars",
		"reads": "rooms.json calendars.reads", "writes": "rooms.json calendars.writes"},
	"till": {"doc": "rooms.json orders.draft", "updated_at": "rooms.json orders.updatedAt"},
	"shop_order": {"id": "orders.ndjson id", "state": "orders.ndjson state", "claimed": "orders.ndjson claimed", "paise": "orders.ndjson paise",
		"test": "orders.ndjson test", "utr": "orders.ndjson utr", "made_at": "orders.ndjson madeAt", "sealed": "orders.ndjson buyer"},
	"shop_order.doc": {"lines": "orders.ndjson lines", "totals": "orders.ndjson totals", "way": "orders.ndjson way", "pay": "orders.ndjson pay",
		"note": "orders.ndjson note", "client": "orders.ndjson client", "known": "orders.ndjson known", "receipt": "orders.ndjson receipt",
		"returned": "orders.ndjson returned", "events": "orders.ndjson events"},
	"order_receipt": {"token": "receipts.ndjson receipt", "buyer": "receipts.ndjson buyer", "revoked_at": "receipts.ndjson revokedAt",
		"reason": "receipts.ndjson reason",
		"doc":    "receipts.ndjson lineItems", "order_id": "receipts.ndjson receipt", "agent": "receipts.ndjson receipt", "client": "receipts.ndjson receipt",
		"currency": "receipts.ndjson receipt", "minor": "receipts.ndjson receipt", "paid_at": "receipts.ndjson receipt",
		"issued_at": "receipts.ndjson receipt",
		"issuer":    "receipts.ndjson receipt", "id": "receipts.ndjson receipt"},
}

// Reasons why a column is in no archive.
const (
	ofNode    = "of the node, or of what it knows of other nodes"
	ofAccount = "of the account, which does not move with a profile"
	ofKey     = "says which profile or record the row belongs to, which its place in the archive says"
	secret    = "a secret, or what opens something: it stays with the node that made it"
	derived   = "made from what the archive has"
	work      = "work that the node does with the rest"
	ofOthers  = "what others wrote or did, which is theirs"
	ofMoney   = "the books of money, which stay with the node that took it"
	choice    = "a choice that is over when it has been made"
	ofState   = "a decision about the profile on this node"
)

// leftOut has the reason for each other column, or for a whole table. A table of which columns are carried
// names each of the others.
var leftOut = map[string]map[string]string{
	"profile": {"seq": ofNode, "picture": derived, "listed": derived, "state": ofState, "state_at": ofState, "state_reason": ofState,
		"identity_note": derived, "identity_links": derived, "alive": derived, "last_seen_at": derived, "joined_at": ofNode, "pos": ofNode, "catalog": derived,
		"reviews": derived, "stars": derived,
		"provider_reviews": derived, "provider_stars": derived, "confirmed_reviews": derived, "confirmed_stars": derived},
	"merchant": {"seq": ofKey, "opens": derived, "closes": derived, "catalog": work, "items": derived, "item_bytes": derived, "news": work, "told_at": work,
		"told_n": work, "import_id": work, "import_at": work},
	"item": {"seq": ofKey, "id": ofNode, "since": work, "until": work, "place": derived, "digest": derived, "currency": derived, "low": derived,
		"high":    derived,
		"indexed": work, "told": work, "away_at": work, "fed": work},

	"notify": {"handle": ofKey, "confirmed": "the address is confirmed on each node", "updated_at": derived,
		"links": "a right of the token that set the addresses here"},
	"agent_key": {"handle": ofKey, "directory": derived, "last_used_at": ofNode},
	"post": {"seq": ofNode, "foreign_uri": derived, "url": derived, "author_local": ofKey, "verdict_note": derived, "node": derived, "reply_count": derived,
		"reports": ofOthers, "stored_at": ofNode, "object": ofOthers, "root": derived, "resolved_by": derived, "language": derived, "mentions": derived,
		"proof_level": derived, "proof_subject": derived, "proof_block": derived, "proof_at": derived, "proof_owner": derived, "proof_hash": derived,
		"thread_count": derived, "likes": ofOthers, "shares": ofOthers, "quotes": ofOthers, "unlisted": ofOthers, "sensitive": ofOthers, "warning": ofOthers,
		"revisions": derived, "part": "the archive has what is in the file"},
	"part": {"": ofNode}, "part_erase": {"": work},
	"thread":         {"handle": ofKey, "visitor": secret, "seen": derived, "agent": derived, "origin": ofNode, "task": ofNode, "task_state": ofNode},
	"thread_message": {"thread_id": ofKey, "public": ofOthers, "edited_at": ofOthers, "withdrawn": ofOthers}, "remote_refusal": {"": ofNode},
	"remote_thread": {"": ofNode}, "remote_message": {"": ofNode}, "client_message": {"thread_id": ofKey},
	"exchange": {"": ofNode}, "exchange_push": {"": ofNode}, "exchange_part": {"": ofNode}, // callers of A2A know a task at the address of its node
	"callback":      {"handle": ofKey, "thread_id": ofKey, "tries": work, "next_at": work, "until": work},
	"contact_block": {"handle": ofKey}, "contact_block_name": {"handle": ofKey, "block_id": ofKey},
	"attention_board": {"seq": ofNode, "id": ofNode, "handle": ofKey, "listed": derived, "account": "a board has no account before its owner sets one here",
		"created_at": ofNode, "disputes": ofMoney},
	"payment_account": {"id": ofNode, "handle": ofKey, "hook": secret, "sealed": secret, "created_at": ofNode, "updated_at": ofNode,
		"retired_at": "only the account in use is in an archive"},
	"payment_account.doc": {"hasKeySecret": secret, "webhookSecrets": secret, "test": derived},
	"bid": {"board": ofKey, "hold": work, "slot_no": work, "bidder": "where a bidder is", "anonymous": "where a bidder is", "account": ofMoney,
		"token_hash": secret,
		"pay_hash":   secret, "hold_until": work, "free_at": work, "moved_at": derived, "moves": derived, "agent": derived, "dispute": derived},
	"bid.doc": {"callback": secret, "visitor": secret, "handle": ofKey, "by": ofNode, "terms": ofMoney, "link": secret, "approved": choice, "claims": work,
		"respondBy": work, "feedId": ofNode, "gaveWay": work, "evidence": ofOthers},
	"bid_move": {"bid": ofKey}, "post_revision": {"post": ofKey},
	"payment": {"board": ofKey, "account": ofMoney, "payee": ofMoney},
	"refund": {"board": ofKey, "whole": work, "tries": work, "last_error": work, "until": work, "round": work,
		"unsure": work},
	"receipt_no": {"board": ofKey}, "meeting_rules": {"handle": ofKey},
	"meeting": {"handle": ofKey, "shown": "a request that the person does not see yet is not in an archive", "requester": "where a requester is",
		"mailbox":    secret,
		"token_hash": secret, "due_at": work, "mail_until": derived, "agent": derived, "known": work},
	"meeting.doc":      {"callback": secret, "visitor": secret, "by": ofNode},
	"calendar_account": {"id": ofNode, "handle": ofKey, "sealed": secret, "updated_at": work},
	"calendar_account.doc": {"mails": derived, "create": choice, "checking": work, "round": work, "tag": work, "full": work, "okAt": work, "failed": work,
		"failedAt": work, "failures": work},
	"order_receipt": {"handle": ofKey, "n": ofNode},
	"till":          {"id": ofNode, "handle": ofKey, "open": "an import closes it"},
	"shop_order": {"till": ofKey, "buyer": "where a buyer is", "mailbox": secret, "anonymous": "where a buyer is", "paid": derived, "account": ofMoney,
		"token_hash": secret, "hold_until": work, "moved_at": derived, "moves": derived},
	"shop_order.doc": {"handle": ofKey, "shop": derived, "link": secret, "claims": work, "lapsed": derived, "by": ofNode, "mailConfirmed": work,
		"reported": work, "checkout": ofNode, "platform": ofNode, "release": ofNode, "webhook": secret},

	"compatible": {"": ofNode}, "certificate": {"": ofNode}, "acme_challenge": {"": ofNode},
	"account": {"": ofAccount}, "account_profile": {"": ofAccount}, "api_token": {"": ofAccount}, "passkey": {"": ofAccount}, "credential_name": {"": ofAccount},
	"recovery_code": {"": ofAccount},
	"session":       {"": ofAccount}, "ticket": {"": ofAccount}, "device": {"": ofAccount},
	"invitation": {"": ofAccount}, "join_mail": {"": work}, "join_try": {"": work}, "joined": {"": ofNode},
	"leaving": {"": work}, "handle": {"": ofNode}, "complaint": {"": ofNode},
	"archive_import": {"": work}, "archive_piece": {"": work}, "archive_post": {"": ofKey}, "attention_category": {"": derived}, "audit": {"": ofNode},
	"bid_author": {"": derived}, "block": {"": ofNode}, "calendar_busy": {"": derived}, "crowd": {"": ofNode},
	"enrolment": {"": "the chain is asked by each node"}, "delegated_key": {"": "of an identity, not of a profile"},
	"feed": {"": derived}, "feedback": {"": ofOthers}, "feedback_agent": {"": ofOthers}, "feedback_mark": {"": ofNode}, "feedback_proof": {"": ofOthers},
	"feedback_sum": {"": derived}, "follower": {"": ofNode}, "follower_count": {"": ofNode}, "generation": {"": ofNode}, "goose_db_version": {"": ofNode},
	"host_policy": {"": ofNode}, "host_scheme": {"": ofNode}, "issued": {"": ofNode}, "item_price": {"": derived},
	"item_term": {"": derived}, "profile_term": {"": derived}, "profile_said": {"": derived}, "post_term": {"": derived}, "post_fresh": {"": derived},
	"job": {"": work}, "kept": {"": ofNode},
	"key_directory": {"": ofNode}, "lane": {"": work}, "ledger": {"": ofMoney}, "log": {"": ofNode}, "meeting_event": {"": "the calendar has it"},
	"meeting_feed": {"": secret}, "meeting_letter": {"": work}, "meeting_mailbox": {"": "where requesters are"}, "merchant_word": {"": derived},
	"merchant_place": {"": derived},
	"moderation_log": {"": ofNode}, "moderation_note": {"": ofNode}, "news": {"": derived}, "news_mark": {"": ofNode}, "outlet": {"": ofNode},
	"stock": {"": "counts change with each sale; the owner counts anew"}, "order_hold": {"": ofMoney},
	"checkout": {"": "waits for an hour, for whoever has its link"},
	"picture":  {"": derived}, "picture_use": {"handle": ofKey, "hash": derived}, "picture_size": {"hash": derived, "edge": derived},
	"catalog_source": {"": "one node reads an address: its owner has the next one read it"},
	"pay_event":      {"": ofMoney}, "post_tag": {"": derived}, "probe": {"": ofNode}, "probe_of": {"": derived}, "profile_clock": {"": ofNode},
	"profile_rank": {"": derived}, "reader": {"": ofNode}, "reaction": {"": ofOthers}, "blocked_by": {"": ofNode},
	"receipt": {"": work}, "remote_actor": {"": ofNode}, "remote_key": {"": ofNode},
	"report": {"": ofOthers}, "review": {"": ofNode}, "review_buyer": {"": ofOthers}, "secret": {"": ofNode}, "sighting": {"": derived}, "spent": {"": ofNode},
	"sqlite_sequence": {"": ofNode},
	"log_tree":        {"": ofNode}, "log_leaf": {"": ofNode}, "log_tile": {"": ofNode}, "followed_tree": {"": ofNode}, "log_witness": {"": ofNode},
	"state_proof": {"": "of an identity and a block, not of a profile"}, "identity_move": {"": "of an identity, as the chain shows it to each node"},
	"agent_document": {"": "each node reads them"}, "agent_twin": {"": derived},
	"log_taken": {"": ofNode}, "log_conflict": {"": ofNode}, "log_report": {"": ofNode}, "feed_origin": {"": ofNode},
	"remote_agent": {"": ofNode}, "agent_told": {"": work}, "ard_source": {"": ofNode}, "ard_entry": {"": ofOthers},
	"stream": {"": ofNode}, "subscription": {"": ofNode}, "tally": {"": ofNode}, "tombstone": {"": ofNode}, "traffic": {"": ofNode},
	"usage":          {"": ofNode},
	"draft":          {"": "waits for minutes, for whoever has its link"},
	"used_signature": {"": ofNode}, "writer": {"": "where writers are"},
}

// documents are the columns with a document whose fields count as columns.
var documents = map[string]reflect.Type{
	"attention_board.doc": reflect.TypeFor[protocol.BoardTerms](), "payment_account.doc": reflect.TypeFor[storage.PaymentAccountDoc](),
	"bid.doc": reflect.TypeFor[storage.BidDoc](), "meeting.doc": reflect.TypeFor[storage.MeetingDoc](),
	"calendar_account.doc": reflect.TypeFor[storage.CalendarDoc](), "shop_order.doc": reflect.TypeFor[storage.OrderDoc](),
}

// recordsOf are the records of each member.
var recordsOf = map[string]reflect.Type{
	manifestFile: reflect.TypeFor[manifest](), profileFile: reflect.TypeFor[profileRecord](), merchantFile: reflect.TypeFor[merchantRecord](),
	itemsFile: reflect.TypeFor[protocol.ItemDraft](), picturesFile: reflect.TypeFor[pictureRecord](),
	notifyFile: reflect.TypeFor[protocol.NotifyDraft](), roomsFile: reflect.TypeFor[roomsRecord](),
	keysFile: reflect.TypeFor[keyRecord](), postsFile: reflect.TypeFor[postRecord](), threadsFile: reflect.TypeFor[threadLine](),
	blocksFile: reflect.TypeFor[blockRecord](), meetingsFile: reflect.TypeFor[meetingRecord](), bidsFile: reflect.TypeFor[bidRecord](),
	ordersFile: reflect.TypeFor[orderRecord](), receiptsFile: reflect.TypeFor[receiptRecord](), writtenFile: reflect.TypeFor[writtenLine](), privateFile: nil,
}

// fieldsOf returns the fields of a record by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		} else if f.Anonymous {
			for name, of := range fieldsOf(f.Type) {
				fields[name] = of
			}
		}
	}
	return fields
}

// TestSchema: each column of the database is in the archive, or on the list with the reason why not.
func TestSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stoa.db")
	storagetest.Migrated(t, path)
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	rows := must.Get(db.Query(`SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2`))(t)
	defer rows.Close()
	columns := map[string][]string{}
	for rows.Next() {
		var table, column string
		require.NoError(t, rows.Scan(&table, &column))
		if doc, ok := documents[table+"."+column]; ok {
			for field := range fieldsOf(doc) {
				columns[table+"."+column] = append(columns[table+"."+column], field)
			}
			continue
		}
		columns[table] = append(columns[table], column)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(columns), 80)
	for table, names := range columns {
		whole := leftOut[table][""] != "" || strings.Contains(table, "_word") // an index of words
		if whole && len(carried[table]) > 0 {
			t.Errorf("%s is left out as a whole and columns of it are carried", table)
		}
		for _, name := range names {
			in, out := carried[table][name] != "", leftOut[table][name] != ""
			if in == out && !whole {
				t.Errorf("%s.%s: say in carried which member of an archive has it, or in leftOut why none does (one of the two)", table, name)
			}
		}
	}
	for _, list := range []map[string]map[string]string{carried, leftOut} {
		for table, names := range list {
			for name := range names {
				if name != "" && !slices.Contains(columns[table], name) || name == "" && columns[table] == nil {
					t.Errorf("there is no %s.%s", table, name)
				}
			}
		}
	}
	for table, names := range carried {
		for column, where := range names {
			member, field, _ := strings.Cut(where, " ")
			of, known := recordsOf[member]
			require.True(t, known, where)
			for _, name := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' }) {
				if of = fieldsOf(of)[name]; of == nil {
					t.Fatalf("%s.%s: %s has no %s", table, column, member, field)
				}
			}
		}
	}
}
