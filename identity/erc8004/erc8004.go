// Package erc8004 reads ERC-8004 identity registries (draft of 2026-01-25) and
// says which message keys may speak for an agent.
//
// An agent is known by its [ID]. Its owner or its agentWallet signs a [Record]
// that lists message keys; the record is kept on chain under the metadata key
// agentKeys, so that one batch of pinned chain reads is all the evidence. A
// [Reader] caches that view with block heights and gives out a [Grant] for a
// key thumbprint; a [Registrar] writes registrations for development and
// administration.
//
// It never fetches a registration document or any other web page: the only
// requests are JSON-RPC calls to the operator's endpoints. When the chain cannot
// be seen it refuses; it never accepts as before.
package erc8004

import "errors"

// The answers of [Reader.Snapshot] and [Reader.Authority], tested with
// errors.Is. The text around them is for the log, not for the public.
var (
	// ErrChainNotSupported: the chain of the ID is not configured.
	ErrChainNotSupported = errors.New("chain is not supported")
	// ErrRegistryNotAllowed: the registry is not on the operator's list for that chain.
	ErrRegistryNotAllowed = errors.New("registry is not allowed")
	// ErrNotRegistered: the registry has no such agent. Cached for 30 seconds.
	ErrNotRegistered = errors.New("agent is not registered")
	// ErrKeyUnknown: no record gives that key authority now. Never granted,
	// revoked and superseded keys are not told apart.
	ErrKeyUnknown = errors.New("key has no authority for the agent")
	// ErrPendingFinality: the key has authority at the head of the chain, by a
	// change that could still be undone. Try again when it is final.
	ErrPendingFinality = errors.New("change of authority is not final")
	// ErrIdentityBound: the agent follows another token (ERC-8217), whose
	// holder changes without any event here.
	ErrIdentityBound = errors.New("agent is bound to another token")
	// ErrUnavailable: the chain cannot be read and nothing fresh is cached, or
	// the budget of chain reads is spent.
	ErrUnavailable = errors.New("chain is unavailable")
	// ErrInvalidID: the text is not an agent id.
	ErrInvalidID = errors.New("invalid agent id")
	// ErrInvalidRecord: the bytes are not a signed key record, or its
	// signature is not that of the signer it names.
	ErrInvalidRecord = errors.New("invalid key record")
)
