package protocol

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Route is how an operation is reached over HTTP. Path parameters are in braces and are fields
// of the input. Status is the status of success.
type Route struct {
	Method, Path string
	Status       int
}

// A Door is a way in, as a bit.
type Door uint8

const (
	HTTP Door = 1 << iota
	MCP
	InPage
	A2A
)

// Everywhere is every door.
const Everywhere = HTTP | MCP | InPage | A2A

// Paths of the MCP doors: everybody's (spec §2.4, §4.1) and the owners'.
const (
	MCPPath      = "/mcp/public"
	OwnerMCPPath = "/mcp/owner"
)

// ExposedHeaders are the response fields that pages of other origins may read, at every door that
// serves such pages (Fetch §3.3.3).
const ExposedHeaders = "ETag, Link, Retry-After, RateLimit, RateLimit-Policy, Request-Id, WWW-Authenticate, Accept-Signature, " +
	"Signature-Error, Idempotency-Replayed"

// An Audience is whom an operation is for. Operations of owners and operators are kept apart from
// everybody's: pages of other origins may not call them, they are tools of another MCP door, and
// no site map or guide lists them.
type Audience uint8

const (
	Everybody Audience = iota
	Owners             // of the profiles of this node, under /api/owner/
	Operators          // of this node, under /api/operator/
)

// A Dialect is a standard whose clients read errors in another form. The problem document then
// also has the members of that form (contract §1).
type Dialect uint8

const (
	DialectNone Dialect = iota
	DialectARD          // errorCode and message; a fault of the request has status 400
)

// Status returns the HTTP status that the dialect gives a code.
func (d Dialect) Status(c Code) int {
	if d == DialectARD && c.Status() == 422 {
		return 400
	}
	return c.Status()
}

// An Operation is one declared thing to do. It is data: package hall binds it to the function
// that does it, and every door, the OpenAPI document, the command line and the reference read it
// from here.
type Operation struct {
	Name        string // snake_case; the tool name and the operationId
	Title       string
	Summary     string // one sentence
	Description string // more, in plain text; may be empty
	HTTP        Route
	Doors       Door
	For         Audience
	Local       bool // without a door: only the operator on the machine does it
	Access      Access
	Scope       Scope         // what an owner's token must have; "" when any token is enough
	Purpose     string        // proof-of-work purpose that is accepted in addition to "contact"; only with Proof in Access
	ReadOnly    bool          // changes no stored data
	Idempotent  bool          // a POST that changes nothing when it is repeated
	Inward      bool          // a write that only reaches the node's operator; others reach people and nodes
	Media       string        // media type of a result that is a string and not JSON; empty for JSON
	MaxAge      time.Duration // how long a public cache may keep the answer; zero means that it must revalidate each time
	NoStore     bool          // the answer is only for this caller
	Conditional bool          // with NoStore: the caller keeps the answer, and asks whether it has changed (RFC 9110 §13.1.2)
	// Secret is the member of the input that opens one thing, such as a thread's read token:
	// over HTTP it is sent as Authorization: Bearer, never in a URL.
	Secret      string
	Visitor     bool       // what a browser began belongs to it: the HTTP door recognises it by a cookie, which it sets on a write
	Confirm     bool       // a person may confirm the write by a link, in place of a proof of work: its input has the member confirmId
	OneTime     bool       // a write whose answer contains a secret: it is not stored for an Idempotency-Key
	Unprofiled  bool       // an owner does it as the account, with or without a profile
	Browser     bool       // of owners: needs a browser that is signed in, mostly one that signed in lately; no token can do it
	Dialect     Dialect    // standard in whose form errors are also given
	Body        int64      // longest body over HTTP in bytes; 0 means 64 KiB (contract §1)
	Upload      int64      // the body is a file of at most so many bytes, not JSON; the input is in the query
	UploadMedia string     // its media type, or several, divided by a comma and a space
	Delivers    *Delivery  // what is later sent to an address that the caller names; nil for nothing
	Replaces    *Operation // the read whose answer this write replaces, wholly or in part: If-Match with its ETag refuses the write after a change in between
	Versioned   bool       // a write replaces its answer, which therefore has an ETag; set by declare
	Codes       []Code     // error codes beyond those every operation can give
	Example     any        // a valid input, of type In

	In, Out reflect.Type
}

// Streams reports whether the result is a [Stream], which only some doors support.
func (o *Operation) Streams() bool { return o.Out == reflect.TypeFor[Stream]() }

// GivesFile reports whether the result is a [File], which only some doors support.
func (o *Operation) GivesFile() bool { return o.Out == reflect.TypeFor[File]() }

// An Op is a declared operation that knows its input and output types, so that
// binding it to a function of other types does not compile.
type Op[In, Out any] struct{ *Operation }

// TakesToken reports whether an API token may admit a caller.
func (o *Operation) TakesToken() bool {
	return o.Access&Session != 0 && !o.Browser || o.For == Operators
}

// Private reports whether a read is only for those who own its subject: the gate demands no
// standing, and the room decides by signature, token or secret.
func (o *Operation) Private() bool { return o.ReadOnly && o.Secret != "" }

var (
	operations []*Operation
	byName     = map[string]*Operation{}
)

// declare declares an operation. What owners and operators read is only for them. Where nothing else is said, owners have the
// doors HTTP and MCP, and act by every way that Owner names or by the Secret; operators have HTTP, and their tokens need the scope
// operator.
func declare[In, Out any](o Operation) Op[In, Out] {
	op := typed[In, Out](o)
	add(op.Operation)
	return op
}

// add adds an operation to those that are declared. It is not part of declare, which the program contains once for each pair of types.
func add(o *Operation) {
	if byName[o.Name] != nil {
		panic(fmt.Sprintf("protocol: operation %s declared twice", o.Name))
	}
	if reflect.TypeOf(o.Example) != o.In {
		panic(fmt.Sprintf("protocol: the Example of operation %s is a %T, not a %s", o.Name, o.Example, o.In))
	}
	switch o.For {
	case Owners:
		if o.Doors = cmp.Or(o.Doors, HTTP|MCP); o.Secret == "" {
			o.Access = cmp.Or(o.Access, Owner)
		}
	case Operators:
		o.Doors, o.Access, o.Scope = HTTP, Operator, cmp.Or(o.Scope, ScopeOperator)
	}
	o.NoStore = o.NoStore || o.ReadOnly && o.For != Everybody
	if o.Replaces != nil {
		o.Codes = append(slices.Clone(o.Codes), PreconditionFailed)
		o.Replaces.Versioned = true
	}
	operations = append(operations, o)
	byName[o.Name] = o
}

func typed[In, Out any](o Operation) Op[In, Out] {
	o.In, o.Out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	return Op[In, Out]{&o}
}

// Operations returns every declared operation, in order of name.
func Operations() []*Operation {
	all := slices.Clone(operations)
	slices.SortFunc(all, func(a, b *Operation) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// OperationsFor returns the declared operations of one audience at a door, in order of name.
func OperationsFor(a Audience, door Door) []*Operation {
	return slices.DeleteFunc(Operations(), func(o *Operation) bool { return o.For != a || o.Doors&door == 0 })
}

// Lookup returns the operation of that name, nil when there is none.
func Lookup(name string) *Operation {
	return byName[name]
}

// A Checker is an input with rules that span several fields or that tags cannot express. Check
// returns every fault; pointers are relative to the input.
type Checker interface{ Check() []Fault }

// None is the input of an operation without input.
type None struct{}
