package node_test

import (
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node/door/httpapi"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// A wall says whose a thing is that an operation names, and so who is a stranger to it.
type wall string

const (
	public    wall = "anyone may name it"
	ofProfile wall = "of a profile, which is named too or follows from the caller"
	ofOwner   wall = "of the owner of the profile that it was sent to or made for"
	ofAccount wall = "of the account"
	ofMaker   wall = "of who began it, and of who has its secret"
	ofBoth    wall = "the same, and the owner of the profile that it was sent to reads it"
	ofAuthor  wall = "of its author, and public: a stranger is told that it is not his"
	ofTicket  wall = "of who has its secret, which names it"
)

// walls has every operation, other than the operators', that names a thing by an id, or takes a secret that opens one.
var walls = map[string]wall{
	"get_board_post": public, "list_post_revisions": public, "report_post": public, "get_receipt_status": public,
	"delete_post": ofAuthor, "edit_post": ofAuthor, "delete_own_post": ofAuthor,

	"put_need": ofProfile, "delete_need": ofProfile, "put_capability": ofProfile, "delete_capability": ofProfile,
	"get_own_item": ofProfile, "put_item": ofProfile, "remove_item": ofProfile, "retire_key": ofProfile,

	"update_order": ofOwner, "read_order": ofTicket, "cancel_order": ofTicket, "read_checkout": ofTicket, "review_order": ofTicket, "confirm_order_mail": ofTicket,
	"ucp_checkout": ofMaker, "ucp_put_checkout": ofMaker, "ucp_cancel_checkout": ofMaker, "ucp_order": ofMaker,
	"adjust_order": ofOwner, "revoke_order_receipt": ofOwner,
	"get_thread": ofOwner, "answer_thread": ofOwner, "close_thread": ofOwner, "mark_thread_read": ofOwner, "block_writer": ofOwner,
	"unblock_writer": ofOwner, "replay_callback": ofOwner, "list_callbacks": ofOwner,
	"get_own_bid": ofOwner, "answer_bid": ofOwner, "approve_bid": ofOwner, "remove_bid": ofOwner, "confirm_bid_payment": ofOwner,
	"deny_bid_payment": ofOwner, "mark_refunded": ofOwner, "trace_own_payment": ofOwner,
	"get_own_meeting": ofOwner, "approve_meeting": ofOwner, "decline_meeting": ofOwner, "propose_meeting_times": ofOwner, "move_meeting": ofOwner,
	"cancel_own_meeting": ofOwner, "mark_no_show": ofOwner,
	"get_calendar": ofOwner, "check_calendar": ofOwner, "choose_calendars": ofOwner, "disconnect_calendar": ofOwner,

	"end_session": ofAccount, "revoke_token": ofAccount, "delete_passkey": ofAccount, "delete_device": ofAccount, "withdraw_invitation": ofAccount,
	"rename_credential": ofAccount, "remove_credential": ofAccount,

	"check_conversation": ofBoth, "continue_conversation": ofBoth, "delete_message": ofMaker, "get_exchange": ofMaker,
	"cancel_exchange": ofMaker, "set_exchange_push": ofMaker, "list_exchange_pushes": ofMaker, "delete_exchange_push": ofMaker,
	"follow_exchange": ofMaker, "send_exchange": ofMaker,
	"get_bid": ofMaker, "withdraw_bid": ofMaker, "dispute_payment": ofMaker,
	"get_meeting": ofMaker, "get_meeting_ics": ofMaker, "cancel_meeting": ofMaker, "pick_meeting_time": ofMaker,

	"get_payment": ofTicket, "claim_payment": ofTicket, "press_sandbox": ofTicket, "whats_new": ofTicket, "add_device": ofTicket,
	"fetch_archive": ofTicket, "undo_deletion": ofTicket, "read_complaint": ofMaker, "confirm_complaint_mail": ofTicket,
	"read_bid_link": ofTicket, "use_bid_link": ofTicket, "read_meeting_link": ofTicket, "use_meeting_link": ofTicket,
	"read_claim": ofTicket, "claim_profile": ofTicket,
	"read_decision_link": ofTicket, "use_decision_link": ofTicket,
}

// notOurs are members that name nothing of the node's: a profile by its handle, which is public, the client's own message, a key at a
// payment provider, a kind of credential.
var notOurs = []string{"handle", "messageId", "keyId", "kind"}

// naming returns the members by which an operation names a thing: those in its path, and those that are an id.
func naming(op *protocol.Operation) (list []string) {
	list = httpapi.PathParams(op.HTTP.Path)
	for name, v := range exampleOf(op) {
		if s, ok := v.(string); ok && s != "" && nodetest.TypeID.FindString(s) == s {
			list = append(list, name)
		}
	}
	for _, f := range reflect.VisibleFields(op.In) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.HasSuffix(name, "Id") || name == "id" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return slices.Contains(notOurs, s) })
}

// TestWalls tries everything that is named by an id as everyone whose it is not: the answer is the one for an id that is nobody's, or
// the documented refusal, and nothing changes. Last its owner does it, so that the thing was there.
func TestWalls(t *testing.T) {
	t.Parallel()
	w := newWalls(t)
	rows := maps.Clone(walls)
	for _, op := range protocol.Operations() {
		row, known := rows[op.Name]
		delete(rows, op.Name)
		if op.For == protocol.Operators || op.Local {
			continue
		}
		if names := naming(op); len(names) == 0 && op.Secret == "" {
			require.False(t, known, "%s names nothing by an id", op.Name)
			continue
		} else if !known {
			t.Errorf("%s names a thing by %q and has no row in walls: whose is it?", op.Name, names)
			continue
		}
		if row == public || row == ofTicket { // the one has no strangers; the other names nothing but by its secret: TestSecrets
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			w := w.in(t)
			args, mine := w.thing(op)
			before := w.rows(op, args)
			require.NotEmpty(t, before, "the thing is there")
			for name, from := range w.strangers(op, row) {
				for what, args := range w.ways(op, row, args) {
					want, got := w.call(op, unknown(args, op), from), w.call(op, args, from)
					require.Contains(t, refusals[row], got.Code, "%s, %s", name, what)
					if row != ofAuthor {
						require.Equal(t, want, got, "%s, %s: as for an id that is nobody's", name, what)
					}
				}
			}
			require.Equal(t, before, w.rows(op, args), "nothing changed")
			w.apart()
			if unshown[op.Name] == "" {
				require.Equal(t, protocol.Code(""), w.call(op, args, mine).Code, "its owner may")
			}
		})
	}
	require.Empty(t, slices.Sorted(maps.Keys(rows)), "walls has rows of operations that do not exist")
}

// unshown are the operations that do not succeed here for their owner, with the reason.
var unshown = map[string]string{}

// refusals are the answers to a stranger, by whose a thing is.
var refusals = map[wall][]protocol.Code{
	ofProfile: {protocol.NotFound, protocol.Forbidden, protocol.Unauthorized, protocol.Validation}, // a person has nothing of a shop's
	ofOwner:   {protocol.NotFound, protocol.Forbidden, protocol.Unauthorized, protocol.Validation},
	ofAccount: {protocol.NotFound, protocol.Forbidden, protocol.Unauthorized},
	ofMaker:   {protocol.NotFound, protocol.Forbidden, protocol.Unauthorized, protocol.PowRequired},
	ofBoth:    {protocol.NotFound, protocol.PowRequired},
	ofAuthor:  {protocol.Forbidden, protocol.Unauthorized},
}

// A from is who calls: evidence for the gate, or a caller as the gate makes it of a signature.
type from struct {
	bearer, cookie string
	caller         *protocol.Caller
}

// call makes one call and returns how it ended; ids that are only named are masked.
func (w *wallsWorld) call(op *protocol.Operation, args map[string]any, who from) outcome {
	w.t.Helper()
	r := hall.Request{Op: op.Name, Args: nodetest.Encoded(args), Door: "test"}
	r.Evidence = identity.Evidence{Request: httptest.NewRequest("POST", w.Base+"/x", nil), Network: "n", Session: who.cookie}
	if who.bearer != "" {
		r.Evidence.Request.Header.Set("Authorization", "Bearer "+who.bearer)
	}
	if c := who.caller; c != nil {
		if op.Access != protocol.Anonymous && op.Access&c.Standing == 0 { // the gate asks for more
			return outcome{Code: protocol.Unauthorized}
		}
		r.Caller = c
	}
	res, err := w.Table.Invoke(w.t.Context(), r)
	if err == nil {
		return outcome{JSON: string(res.JSON)}
	}
	e := protocol.AsError(err)
	require.NotEqual(w.t, protocol.Internal, e.Code, "%s: %v", op.Name, err)
	o := refusal(e.Code, e.Faults)
	o.JSON = e.Detail
	for _, name := range naming(op) {
		if s, ok := args[name].(string); ok {
			o.JSON = strings.ReplaceAll(o.JSON, s, "ID")
		}
	}
	return o
}

// unknown are arguments that name a thing of the same kind that is nobody's.
func unknown(args map[string]any, op *protocol.Operation) map[string]any {
	out := maps.Clone(args)
	for _, name := range naming(op) {
		s, ok := out[name].(string)
		switch m := nodetest.TypeID.FindStringSubmatch(s); {
		case !ok:
		case strings.HasPrefix(s, "task_"):
			out[name] = protocol.ExchangeID{ThreadID: newID(protocol.ThreadID), First: 1}.String()
		case m != nil:
			out[name] = newID(m[1])
		case len(s) == 43:
			out[name] = strings.Repeat("A", 43)
		default:
			out[name] = "nobodys"
		}
	}
	return out
}

// TestWalls_Operators: what operators do is done by no one else, whatever it names.
func TestWalls_Operators(t *testing.T) {
	t.Parallel()
	w := newWalls(t)
	operations := protocol.OperationsFor(protocol.Operators, protocol.HTTP)
	require.Greater(t, len(operations), 20)
	for _, op := range operations {
		for name, want := range map[string]protocol.Code{
			"nobody": protocol.Unauthorized, "a proof": protocol.Unauthorized, "another key": protocol.Unauthorized, "another identity": protocol.Unauthorized,
			"the owner": protocol.Forbidden, "an operator's token without the scope": protocol.Forbidden,
			"an operator's token with the scope of the operation alone": protocol.Forbidden,
		} {
			from, ok := w.others[name]
			if name == "an operator's token with the scope of the operation alone" && op.Scope == protocol.ScopeOperator {
				continue
			}
			require.True(t, ok, name)
			require.Equal(t, want, w.call(op, nodetest.Members(t, op.Example), from).Code, "%s: %s", op.Name, name)
		}
	}
}
