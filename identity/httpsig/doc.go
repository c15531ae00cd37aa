// Package httpsig signs and verifies HTTP messages with RFC 9421 signatures, in the forms that
// agents (Web Bot Auth, draft-meunier-webbotauth-httpsig-protocol-02 and its successor), this
// node's own clients and the fediverse use.
//
// A Verifier answers one question: which key signed which parts of this message? It parses the
// fields once with its own strict scanner, checks each candidate signature against a Policy, asks
// a KeyResolver for the key, verifies the signature and then hashes the body. A Result exists only
// after every step.
//
// It fetches nothing, stores no nonces and decides no rights: the resolver knows keys, the caller
// spends Result.NonceKey in its own transaction, and Result.Principal is whatever the resolver
// returned. Not implemented, on purpose: hmac-sha256, trailers. The older draft-cavage
// form is in the subpackage cavage.
package httpsig
