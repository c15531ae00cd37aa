// Package hall is the hall. Every door passes a [Request] to it, and it is admitted, limited,
// checked, run in one transaction and observed, in that order and for every operation. [Bind]
// binds a room's function to its declared operation; code in which their types differ does not
// compile.
package hall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/trace"
	"stoa/storage"
)

// ErrKeyReused is the cause of a conflict over an idempotency key.
var ErrKeyReused = errors.New("idempotency key reused")

// ReceiptLifetime is how long an idempotency key is remembered (contract §1).
const ReceiptLifetime = 24 * time.Hour

// A Request is what a door makes of a message: the operation, its arguments as one JSON object,
// and the evidence of the caller.
type Request struct {
	Op             string
	Args           []byte // a JSON object; the member pow is removed from it; nil means {}
	Evidence       identity.Evidence
	Faults         []protocol.Fault // faults that the door found in the form of the arguments
	Caller         *protocol.Caller // admitted by the door already, which also counted the network's write; nil when the hall must do both
	Upload         io.Reader        // the file of an operation that takes one; read after the caller is admitted
	IfMatch        string           // for an operation that replaces something: the tag of the answer that the caller read, "" for any
	IdempotencyKey string           // 1 to 64 visible ASCII characters, "" for none
	Kept           func() bool      // looks for an answer that the door has kept, after the caller is admitted; nil for none
	Door           string           // for the log: http, mcp, …
	ID             string           // of the request, for the log; "" for that of the context
	Quiet          bool             // a door looks again at what it has served; nothing is observed
}

// A Result is the answer of an operation. JSON is its encoding; for an operation with its own
// media type it is the text itself.
type Result struct {
	Op       *protocol.Operation
	Caller   protocol.Caller
	Value    any // of a streaming operation, a protocol.Stream, which the door closes
	JSON     []byte
	Replayed bool // it is the stored answer for an idempotency key
	Kept     bool // the door has the answer: Request.Kept found it
	Open     bool // the answer is valid for every caller, so that the door may keep it
}

// A Table holds the bound operations. Call Bind for all, then Complete, then Invoke from any
// number of goroutines.
type Table struct {
	DB      *storage.DB
	Gate    *identity.Gate
	Limits  *Limits
	Rules   Rules             // what the operator changes at run time; may be nil
	Observe func(Observation) // called once per Invoke; may be nil
	Schemas *Schemas
	// Receipts encrypts stored answers; nil stores them as they are. Drafts are kept only with it.
	Receipts *key.Sealer
	Base     string // address of the node, for the links of drafts

	drafts fullness

	entries map[string]*entry
}

// Rules are what the operator may change at run time.
type Rules interface {
	// Fresh reloads the rules if they have changed; it is called often and must be cheap.
	Fresh(ctx context.Context)
	// Blocked returns the error for a caller that may not write, nil for others. handle is the
	// profile of an owner's operation, "" when it names none.
	Blocked(c protocol.Caller, handle string) error
}

type entry struct {
	op    *protocol.Operation
	in    *huma.Schema
	plain bool
	// run calls the room with a pointer to the input. tx is nil for a plain operation.
	run func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in any) (any, error)
	// file runs an operation that receives a file, in several transactions.
	file func(ctx context.Context, c protocol.Caller, args []byte, file io.Reader) (any, error)
	// ahead returns the error that any anonymous caller would get; nil for none.
	ahead func(ctx context.Context, tx *storage.Tx, args []byte) error
}

// New returns an empty table.
func New(db *storage.DB, gate *identity.Gate, limits *Limits) *Table {
	return &Table{DB: db, Gate: gate, Limits: limits, Schemas: Declared(), entries: map[string]*entry{}}
}

// Bind binds an operation to a room's function. It runs inside one transaction, a read transaction
// for a ReadOnly operation. It may run twice and must have no effect outside the transaction.
func Bind[In, Out any](t *Table, op protocol.Op[In, Out], run func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in In) (Out, error)) {
	t.add(op.Operation, false, func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in any) (any, error) {
		return run(ctx, tx, c, *in.(*In))
	})
}

// BindPlain binds an operation that reads no stored data, or opens its own transaction where it does.
func BindPlain[In, Out any](t *Table, op protocol.Op[In, Out], run func(ctx context.Context, c protocol.Caller, in In) (Out, error)) {
	t.add(op.Operation, true, func(ctx context.Context, _ *storage.Tx, c protocol.Caller, in any) (any, error) {
		return run(ctx, c, *in.(*In))
	})
}

// BindFile binds an operation that receives a file, which may take long to arrive: the room opens
// its own transactions after that. Idempotency keys are not supported.
func BindFile[In, Out any](t *Table, op protocol.Op[In, Out], run func(ctx context.Context, c protocol.Caller, in In, file io.Reader) (Out, error)) {
	t.add(op.Operation, true, nil)
	t.entries[op.Name].file = func(ctx context.Context, c protocol.Caller, args []byte, file io.Reader) (any, error) {
		in, err := decode(op.Operation, args)
		if err != nil {
			return nil, err
		}
		if file == nil {
			file = bytes.NewReader(nil)
		}
		return run(ctx, c, *in.(*In), file)
	}
}

// Ahead adds a check that runs before a proof of work is demanded: would the operation fail, for a
// public reason, for anyone with a solved proof of work? Its result must not depend on the caller.
func Ahead[In, Out any](t *Table, op protocol.Op[In, Out], look func(ctx context.Context, tx *storage.Tx, in In) error) {
	t.entries[op.Name].ahead = func(ctx context.Context, tx *storage.Tx, args []byte) error {
		in, err := decode(op.Operation, args)
		if err != nil {
			return err
		}
		return look(ctx, tx, *in.(*In))
	}
}

// An input is the arguments of one request. They are decoded for the check, and the room gets
// what was checked. A room that runs again gets them decoded again: it may have changed them.
type input struct {
	args  []byte
	in    any
	err   error
	fresh bool // in and err are of args, and no room had them
}

func (i *input) decode(e *entry) (any, error) {
	if !i.fresh {
		i.in, i.err, i.fresh = nil, nil, true
		i.in, i.err = decode(e.op, i.args)
	}
	return i.in, i.err
}

// run calls the room.
func (i *input) run(ctx context.Context, e *entry, tx *storage.Tx, c protocol.Caller) (any, error) {
	in, err := i.decode(e)
	if i.fresh = false; err != nil {
		return nil, err
	}
	return e.run(ctx, tx, c, in)
}

// check applies the rules that span several fields, also to the decodable part of arguments that
// do not fit their schema; fit means that the schema found no fault.
func (i *input) check(e *entry, fit bool) []protocol.Fault {
	in, err := i.decode(e)
	if err != nil && fit {
		return protocol.AsError(err).Faults
	}
	if checker, ok := in.(protocol.Checker); ok {
		return checker.Check()
	}
	return nil
}

// decode decodes arguments that passed the schema, as far as they can be decoded, into a new input of an operation, and returns a
// pointer to it. A value that the type cannot hold is a fault of the caller. Handles and tags are folded here, once for every door.
func decode(op *protocol.Operation, args []byte) (in any, err error) {
	in = reflect.New(op.In).Interface()
	err = json.Unmarshal(args, in)
	protocol.Fold(in)
	if err != nil {
		fault := protocol.Fault{Code: "wrong-type", Detail: "does not fit the schema of this operation"}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			fault.Pointer = "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		return in, protocol.Invalid(fault)
	}
	return in, nil
}

func (t *Table) add(op *protocol.Operation, plain bool, run func(context.Context, *storage.Tx, protocol.Caller, any) (any, error)) {
	if t.entries[op.Name] != nil {
		panic("hall: " + op.Name + " bound twice")
	}
	t.entries[op.Name] = &entry{op: op, in: t.Schemas.Of(op.In), plain: plain, run: run}
}

// Complete returns an error when one of the operations is not bound.
func (t *Table) Complete(all []*protocol.Operation) error {
	for _, op := range all {
		if t.entries[op.Name] == nil && op.Doors != protocol.InPage {
			return fmt.Errorf("operation %s is declared and not bound: hall.Bind it in the method Bind of its room", op.Name)
		}
	}
	return nil
}

// Invoke runs one operation for one caller. Errors are *protocol.Error or, for faults of the node,
// any other; AsError returns what the caller may see.
func (t *Table) Invoke(ctx context.Context, req Request) (Result, error) {
	start := time.Now()
	ctx, span := trace.Start(ctx, "operation", trace.Internal)
	res, err := t.invoke(ctx, req)
	if span != nil {
		endSpan(span, req.Door, res, err)
	}
	if t.Observe != nil && !req.Quiet {
		t.Observe(Observation{
			ID: cmp.Or(req.ID, protocol.RequestID(ctx)), Trace: trace.ID(ctx),
			Op: req.Op, Door: req.Door, Caller: res.Caller, Err: err, Duration: time.Since(start), Replayed: res.Replayed, Kept: res.Kept,
		})
	}
	return res, err
}

// endSpan ends the span of an operation with what came of it.
func endSpan(s *trace.Span, door string, res Result, err error) {
	code := protocol.CodeOf(err)
	if res.Op != nil {
		s.Name = res.Op.Name
	}
	s.Set(trace.Text("stoa.door", door), trace.Text("stoa.caller", res.Caller.Standing.String()))
	if err != nil {
		s.Set(trace.Text("error.type", string(code)))
	}
	if err != nil && code.Status() >= http.StatusInternalServerError {
		s.Fail()
	}
	s.End()
}

func (t *Table) invoke(ctx context.Context, req Request) (Result, error) {
	e := t.entries[req.Op]
	if e == nil || e.op.Local && !req.Evidence.Operator {
		return Result{}, protocol.Errorf(protocol.NotFound, "there is no operation of that name")
	}
	if t.Rules != nil {
		t.Rules.Fresh(ctx)
	}
	res := Result{Op: e.op}
	// The router has counted the request. Writes are counted here, where they are known to be
	// writes and before anything that costs a hash or a fetch.
	if !e.op.ReadOnly && !req.Evidence.Operator && req.Caller == nil {
		if err := t.Limits.Write(req.Evidence.Network); err != nil {
			return res, err
		}
	}
	args, value, err := open(req.Args, &req.Evidence, e.op)
	if err != nil {
		return res, err
	}
	if id, sent := confirms(e.op, value); sent {
		return t.resume(ctx, e, req, id, value)
	}
	in := &input{args: args}
	if res.Caller, err = t.admit(ctx, req, e.op); err != nil {
		refused := t.helpful(ctx, err, e, in, value, req)
		t.offer(ctx, refused, e, req, value)
		return res, refused
	}
	if t.Rules != nil && !e.op.ReadOnly {
		handle, _ := value["handle"].(string)
		if e.op.For != protocol.Owners {
			handle = ""
		}
		if err := t.Rules.Blocked(res.Caller, protocol.CleanHandle(handle)); err != nil {
			return res, err
		}
		if err := res.Caller.MayWhileHidden(e.op, protocol.CleanHandle(handle)); err != nil {
			return res, err
		}
	}
	if err := t.Limits.Caller(res.Caller, e.op); err != nil {
		return res, err
	}
	if req.Kept != nil && req.Kept() {
		res.Kept = true
		return res, nil
	}
	if err := t.check(e, in, value, req); err != nil {
		return res, err
	}
	text := t.prose(e, res.Caller, value)
	paid := text == nil || t.Gate.Proofs.Covers(res.Caller.Solved, res.Caller.Network, text)
	switch err := t.run(ctx, e, req, in, paid, &res); {
	case errors.Is(err, errAlike):
		return res, t.helpful(ctx, t.Gate.Harder(res.Caller, e.op, text), e, in, value, req)
	case err != nil:
		t.turnedAway(ctx, err)
		return res, t.helpful(ctx, t.Gate.Refresh(err, req.Evidence, e.op), e, in, value, req)
	}
	if res.Caller.Standing == protocol.Proof && !res.Replayed {
		t.Gate.Proofs.Paid(res.Caller.Network, res.Caller.Solved, text)
	}
	return res, nil
}

// turnedAway counts a caller for whom a profile had no room: its owner is shown the number.
func (t *Table) turnedAway(ctx context.Context, err error) {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Refused != "" {
		// The answer does not depend on it.
		_ = t.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Crowds().Add(ctx, e.Refused, storage.CrowdMeetingRefused, 1)
		})
	}
}

// helpful returns err, except when it demands a proof of work that would not help. Then it returns
// the faults of the arguments, or the public reason why the operation would fail anyway. The
// network's limit was counted before.
func (t *Table) helpful(ctx context.Context, err error, e *entry, in *input, value map[string]any, req Request) error {
	if asks, ok := errors.AsType[*protocol.Error](err); !ok || asks.Challenge == nil {
		return err
	}
	if wrong := t.pointless(ctx, e, in, value, req); wrong != nil {
		return wrong
	}
	return err
}

// pointless returns why the operation would fail for anyone with a solved proof of work; nil when nothing is known.
func (t *Table) pointless(ctx context.Context, e *entry, in *input, value map[string]any, req Request) error {
	if wrong := t.check(e, in, value, req); wrong != nil || e.ahead == nil {
		return wrong
	}
	return t.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error { return e.ahead(ctx, tx, in.args) })
}

// Helpful is for a door that admits callers itself: it returns err, except when that demands a proof of work that would not help.
func (t *Table) Helpful(ctx context.Context, err error, name string, args []byte) error {
	if asks, ok := errors.AsType[*protocol.Error](err); !ok || asks.Challenge == nil {
		return err
	}
	_, value, wrong := open(args, &identity.Evidence{}, t.entries[name].op)
	if wrong != nil {
		return wrong
	}
	return t.helpful(ctx, err, t.entries[name], &input{args: args}, value, Request{})
}

// admit determines the caller, unless the door has.
func (t *Table) admit(ctx context.Context, req Request, op *protocol.Operation) (protocol.Caller, error) {
	if req.Caller == nil {
		return t.Gate.Admit(ctx, req.Evidence, op)
	}
	if op.Access != protocol.Anonymous && op.Access&req.Caller.Standing == 0 {
		return *req.Caller, protocol.Errorf(protocol.Forbidden, "%s is not open to callers of this door", op.Name)
	}
	return *req.Caller, nil
}

// Limits of a JSON body (contract §1), and of a file of the operator on the machine.
var (
	bodyLimits = strictjson.Limits{MaxBytes: 64 << 10, MaxDepth: 16, MaxTokens: 8192}
	fileLimits = strictjson.Limits{MaxBytes: 256 << 10, MaxDepth: 16, MaxTokens: 20_000}
)

// open reads the arguments strictly and removes the proof of work from them.
func open(raw []byte, ev *identity.Evidence, op *protocol.Operation) ([]byte, map[string]any, error) {
	if len(raw) == 0 {
		return []byte("{}"), map[string]any{}, nil
	}
	limits := bodyLimits
	if ev.Operator {
		limits = fileLimits
	}
	if most := int(op.Body); most > limits.MaxBytes {
		limits.MaxBytes, limits.MaxTokens = most, most/8
	}
	if err := strictjson.Check(raw, limits); err != nil {
		return nil, nil, protocol.Errorf(protocol.InvalidRequest, "the body cannot be read as JSON: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return nil, nil, protocol.Errorf(protocol.InvalidRequest, "the body must be a JSON object")
	}
	raw = strictjson.Whole(raw)
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil { // it is valid JSON, so no other error is possible
		return nil, nil, protocol.Errorf(protocol.InvalidRequest, "the body contains a number that is out of range")
	}
	if _, sent := value["pow"]; sent {
		if pow := strictjson.Members(raw)["pow"]; len(ev.Proof) == 0 && !bytes.Equal(pow, []byte("null")) {
			ev.Proof = pow
		}
		delete(value, "pow")
	}
	return raw, value, nil
}

// Valid returns what is wrong with the arguments of an operation, without doing it.
func (t *Table) Valid(name string, args []byte) error {
	e, in := t.entries[name], &input{args: args}
	_, value, err := open(args, &identity.Evidence{}, e.op)
	if err != nil {
		return err
	}
	return t.check(e, in, value, Request{})
}

func (t *Table) check(e *entry, in *input, value map[string]any, req Request) error {
	faults := append(t.Schemas.Check(e.in, value), req.Faults...)
	if len(faults) < protocol.MaxFaults && !slices.ContainsFunc(faults, tooLarge) {
		faults = apart(faults, in.check(e, len(faults) == 0))
	}
	if !goodKey(req.IdempotencyKey) {
		faults = append(faults, protocol.Fault{Pointer: "", Code: "idempotency-key", Detail: "the Idempotency-Key header holds 1 to 64 visible ASCII characters"})
	}
	if req.IdempotencyKey != "" && e.op.OneTime && req.Door != "page" {
		faults = append(faults, protocol.Fault{Pointer: "", Code: "idempotency-key",
			Detail: "the answer is shown once and not kept, so it cannot be repeated; leave the Idempotency-Key header out"})
	}
	if len(faults) > 0 {
		return protocol.Invalid(faults...)
	}
	return nil
}

// tooLarge reports a fault of a value that may cost more to check than an operation costs to run.
func tooLarge(f protocol.Fault) bool { return f.Code == "too-long" || f.Code == "too-many" }

// apart appends those of more that are about members without a fault of the schema, in themselves
// or in a part: for the others, the rules that span several fields are not reliable.
func apart(faults, more []protocol.Fault) []protocol.Fault {
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") || b == "" }
	of := len(faults)
	for _, m := range more {
		if !slices.ContainsFunc(faults[:of], func(f protocol.Fault) bool { return within(f.Pointer, m.Pointer) || within(m.Pointer, f.Pointer) }) {
			faults = append(faults, m)
		}
	}
	return faults
}

func goodKey(key string) bool {
	return len(key) <= 64 && !slices.ContainsFunc([]byte(key), func(c byte) bool { return c < 0x21 || c > 0x7e })
}

func (t *Table) run(ctx context.Context, e *entry, req Request, in *input, paid bool, res *Result) error {
	var err error
	switch {
	case e.file != nil:
		res.Value, err = e.file(ctx, res.Caller, in.args, req.Upload)
	case e.plain:
		err = e.read(protocol.WithRequestID(ctx, req.ID), nil, in, res)
	case e.op.ReadOnly:
		err = t.DB.ReadAnywhere(ctx, func(ctx context.Context, tx *storage.Tx) error { return e.read(ctx, tx, in, res) })
	default:
		return t.write(protocol.WithRequestID(ctx, req.ID), e, req, in, paid, res)
	}
	if err != nil {
		return err
	}
	res.JSON, err = encode(e.op, res.Value)
	return err
}

// read runs an operation that changes nothing. An open one is first run for an unknown caller:
// that answer is the same for every caller and may be kept. If it fails, the caller may still have
// a right to it, such as the author of a hidden post.
func (e *entry) read(ctx context.Context, tx *storage.Tx, in *input, res *Result) (err error) {
	if Open(e.op) {
		res.Value, err = in.run(ctx, e, tx, protocol.Caller{Network: res.Caller.Network})
		res.Open = err == nil
		if err == nil || res.Caller.Standing == protocol.Anonymous || protocol.CodeOf(err) == protocol.Internal {
			return err
		}
	}
	res.Value, err = in.run(ctx, e, tx, res.Caller)
	return err
}

func encode(op *protocol.Operation, value any) ([]byte, error) {
	if op.Streams() || op.GivesFile() {
		return nil, nil // the door writes it while it is produced
	}
	if op.Media != "" {
		if s, ok := value.(string); ok {
			return []byte(s), nil
		}
		return nil, fmt.Errorf("operation %s has media type %s and gave %T", op.Name, op.Media, value)
	}
	return JSON(value)
}

// JSON encodes a value on its own line, with <, > and & unescaped, since models and people read
// answers as they are.
func JSON(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
