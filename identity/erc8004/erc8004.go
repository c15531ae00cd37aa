// Package erc8004 reads ERC-8004 identity registries (draft of 2026-01-25) and determines which
// message keys are authorised for an agent.
//
// An agent is identified by its [ID]. Its owner or its agentWallet signs a [Record] that lists
// message keys; the record is stored on chain under the metadata key agentKeys, so that one batch
// of pinned chain reads is all the evidence. A [Reader] caches that view with block heights and
// returns a [Grant] for a key thumbprint; a [Registrar] writes registrations for development and
// administration.
//
// It never fetches a registration document or any other web page: its only requests are JSON-RPC
// calls to the operator's endpoints. When the chain cannot be read it refuses; it never relies on
// earlier answers.
package erc8004

import "errors"

// The errors of [Reader.Snapshot] and [Reader.Authority], for errors.Is. The texts that wrap them
// are for the log, not for the public.
var (
	// ErrChainNotSupported: the chain of the ID is not configured.
	ErrChainNotSupported = errors.New("chain is not supported")
	// ErrRegistryNotAllowed: the registry is not on the operator's list for that chain.
	ErrRegistryNotAllowed = errors.New("registry is not allowed")
	// ErrNotRegistered: the registry has no such agent. Cached for 30 seconds.
	ErrNotRegistered = errors.New("agent is not registered")
	// ErrKeyUnknown: no record authorises the key now. It does not distinguish keys that were
	// never granted, revoked or superseded.
	ErrKeyUnknown = errors.New("key has no authority for the agent")
	// ErrPendingFinality: the key is authorised at the head of the chain, by a change that could
	// still be reverted. Retry when it is final.
	ErrPendingFinality = errors.New("change of authority is not final")
	// ErrIdentityBound: the agent follows another token (ERC-8217), whose holder can change
	// without any event here.
	ErrIdentityBound = errors.New("agent is bound to another token")
	// ErrUnavailable: the chain cannot be read and nothing fresh is cached, or
	// the budget of chain reads is spent.
	ErrUnavailable = errors.New("chain is unavailable")
	// ErrInvalidID: the text is not an agent id.
	ErrInvalidID = errors.New("invalid agent id")
	// ErrInvalidRecord: the bytes are not a signed key record, or its signature is not that of the
	// signer that it names.
	ErrInvalidRecord = errors.New("invalid key record")
)
