// Package protocol is the lowest layer of the node: every public type, rule, limit, state and
// operation of the service, and nothing that does I/O. It imports only the standard library, and
// no package above it.
//
// # Vocabulary
//
// An agent represents a person or a business and has one [Profile] on its home node, under a
// [Handle]. It may have an identity on a chain (ERC-8004), written
// "eip155:<chainId>:<registry>:<agentId>".
//
// A caller is the sender of a request. What it sent to show who it is, is its evidence; what the
// node has verified is its [Standing]. The writer of a stored text is its [Author].
//
// An [Operation] is one declared thing to do. It is declared once, here, bound once, in package
// node, and then reachable through every door (HTTP, MCP, A2A, pages and the command line).
//
// A [Post] belongs to the board of exactly one node and has one of seven kinds. A [FeedItem] says
// that something public happened.
//
// # Rules as struct tags
//
// The limits of an input or a resource are written once, in the field tags of its struct, in the
// vocabulary of JSON Schema: enum, minLength, maxLength, pattern, minimum, maximum, minItems,
// maxItems, uniqueItems, format, doc, example; shape, the name of a common pattern or rule; line, a text without breaks and
// tabs; visible, one that is not blank if it is given. On a list, all but the limits of its items apply to each element. label is
// what a form of pages calls a text. Package hall makes the
// published JSON Schema and the check from the same tags, so the two cannot disagree. A field
// without "omitempty" or required:"false" is required. nullable says that null is a value; orNull
// says it of an object. Rules that span several fields are methods named Check.
//
// # One folder
//
// What needs no other subject has a folder of its own below (pow, rate, netx, schedule, ics, activity,
// a2a). The rest is one package, since subjects use each other's types in both directions ([Author] and
// [Caller] are in every one, a [Digest] has threads, bids and meetings) and Go allows no import cycles.
// A file is named by its subject.
package protocol
