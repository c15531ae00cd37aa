package protocol

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Route is where an operation is reached over HTTP. Path parameters stand in
// braces and are fields of the input. Status is the status of success.
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

// Where the MCP doors stand: everybody's (spec §2.4, §4.1) and the owners'.
const (
	MCPPath      = "/mcp/public"
	OwnerMCPPath = "/mcp/owner"
)

// ExposedHeaders are the fields that pages of other origins may read of an answer,
// at every door that takes them (Fetch §3.3.3).
const ExposedHeaders = "ETag, Link, Retry-After, RateLimit, RateLimit-Policy, Request-Id, WWW-Authenticate, Accept-Signature, Signature-Error, Idempotency-Replayed"

// An Audience says for whom an operation is. The operations of owners and
// operators stand apart from everybody's: no other origin's page may call them,
// they are tools of another MCP door, and no site map or guide lists them.
type Audience uint8

const (
	Everybody Audience = iota
	Owners             // of the profiles of this node, under /api/owner/
	Operators          // of this node, under /api/operator/
)

// A Dialect is a standard whose clients read errors in a form of its own. The
// problem document then has its members as well (contract §1).
type Dialect uint8

const (
	DialectNone Dialect = iota
	DialectARD          // errorCode and message; what is wrong with the request is 400
)

// Status is the HTTP status that the dialect gives a code.
func (d Dialect) Status(c Code) int {
	if d == DialectARD && c.Status() == 422 {
		return 400
	}
	return c.Status()
}

// An Operation is one declared thing to do. It is data: package dispatch binds
// it to the code that does it, and every door, the OpenAPI document, the
// command line and the reference read it from here.
type Operation struct {
	Name        string // snake_case; the tool name and the operationId
	Title       string
	Summary     string // one sentence
	Description string // more, in plain text; may be empty
	HTTP        Route
	Doors       Door
	For         Audience
	Access      Access
	Scope       Scope         // what an owner's token must allow; "" when any token will do
	Purpose     string        // proof-of-work purpose accepted beside "contact"; only with Proof in Access
	ReadOnly    bool          // changes nothing that is stored
	Idempotent  bool          // a write by POST whose repetition changes nothing more
	Inward      bool          // a write that reaches the node's operator only; others reach people and nodes
	Media       string        // media type of a result that is a string and not JSON; empty for JSON
	MaxAge      time.Duration // how long a public cache may keep the answer; zero means ask again each time
	NoStore     bool          // the answer is for this caller alone
	Secret      string        // member of the input that opens one thing, a thread's read token: over HTTP it travels as Authorization: Bearer, never in a URL
	Visitor     bool          // what a browser began here belongs to it: the HTTP door knows it again by a cookie, and gives one on a write
	OneTime     bool          // a write whose answer holds a secret: it is not kept for an Idempotency-Key
	Dialect     Dialect       // the standard in whose form errors are given too
	Upload      int64         // the body is not JSON but a file of at most so many bytes; the input travels in the query
	UploadMedia string        // its media type
	Delivers    *Delivery     // what it sends later to an address that the caller names; nil for nothing
	Codes       []Code        // error codes beyond those every operation can give
	Example     any           // a valid input, of type In

	In, Out reflect.Type
}

// Streams reports whether the result is a [Stream], which only doors that can
// carry one have.
func (o *Operation) Streams() bool { return o.Out == reflect.TypeFor[Stream]() }

// GivesFile reports whether the result is a [File], which only doors that can
// carry one have.
func (o *Operation) GivesFile() bool { return o.Out == reflect.TypeFor[File]() }

// An Op is a declared operation that knows its input and output types, so that
// binding it to a function of other types does not compile.
type Op[In, Out any] struct{ *Operation }

// TakesToken reports whether an API token may admit a caller.
func (o *Operation) TakesToken() bool {
	return o.Access&Session != 0 || o.For == Operators
}

// Private reports whether a read is for whoever it belongs to: no standing is
// demanded at the door, and the room tells by signature, token or secret.
func (o *Operation) Private() bool { return o.ReadOnly && o.Secret != "" }

var operations []*Operation

func declare[In, Out any](o Operation) Op[In, Out] {
	o.In, o.Out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if slices.ContainsFunc(operations, func(p *Operation) bool { return p.Name == o.Name }) {
		panic(fmt.Sprintf("protocol: operation %s declared twice", o.Name))
	}
	if _, ok := o.Example.(In); !ok {
		panic(fmt.Sprintf("protocol: operation %s has no example of its input", o.Name))
	}
	operations = append(operations, &o)
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

// OperationsFor returns the declared operations of one audience behind a door,
// in order of name.
func OperationsFor(a Audience, door Door) []*Operation {
	return slices.DeleteFunc(Operations(), func(o *Operation) bool { return o.For != a || o.Doors&door == 0 })
}

// Lookup returns the operation of that name, nil when there is none.
func Lookup(name string) *Operation {
	for _, o := range operations {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// A Checker is an input with rules that span fields or that tags cannot say.
// Check returns every fault it finds; pointers are relative to the input.
type Checker interface{ Check() []Fault }

// None is the input of an operation that takes nothing.
type None struct{}
