// Package identity determines the caller of a request. [Gate] turns what a request carries (a
// signature per RFC 9421, an owner's token, a solved proof of work) into a [protocol.Caller], or
// refuses it. A signature that is present and invalid is refused and never treated as anonymous
// (contract §2).
//
// The parts: httpsig (RFC 9421, and draft-cavage in its subpackage), key (key pairs, JWK,
// sealing), erc8004 (keys registered on chain), directory (foreign key directories), proof (proof
// of work), integrity (FEP-8b32 proofs and agents' statements), strictjson (JSON from outside). It
// uses no database: what must be stored is accessed through small interfaces.
package identity
