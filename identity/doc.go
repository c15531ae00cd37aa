// Package identity finds out who is speaking. [Gate] turns what a request
// carries (a signature per RFC 9421, an owner's token, a solved proof of work)
// into a [protocol.Caller], or refuses it. A signature that is present and
// broken is refused and never taken as anonymous (contract §2).
//
// The parts: httpsig (RFC 9421, and draft-cavage below it), key (key pairs, JWK,
// sealing), erc8004 (keys registered on chain), directory (foreign key
// directories), proof (proof of work), integrity (FEP-8b32 proofs and agents'
// statements), strictjson (JSON from outside). No database is in it: what must
// be remembered is asked for through small interfaces.
package identity
