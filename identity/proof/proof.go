// Package proof issues and checks proof-of-work challenges (protocol/pow). A challenge is
// stateless: it carries the issuer's MAC, made with a secret that all processes of a deployment
// share, so it survives a restart and is valid on every process. Storage spends it, in the
// transaction of the write that it pays for.
package proof

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/protocol/pow"
)

const (
	// Lifetime of a challenge (contract §3); slow phones need minutes.
	Lifetime = 10 * time.Minute

	keyBytes  = 32
	queueWait = 2 * time.Second // longest wait for a free core to derive a key
	youth     = time.Minute     // how long a challenge made for a text is valid at any level
	maxBurnt  = 100_000

	AnyPurpose = "contact" // a proof of this purpose pays for everything
)

// baseLevel is the level at which a purpose starts, see pow.Ladder.
var baseLevel = map[string]int{"report": 1, "contact": 2, "board": 2, "meeting": 2, "bid": 3, "join": 3}

// A Config configures an Issuer. Master is the secret of the deployment, at least 16 bytes.
// Audience is the node's host; a challenge of another node is refused.
type Config struct {
	Master   []byte
	Audience string
	Now      func() time.Time
	// Flat, when not nil, is the level of every challenge, without the ramp.
	Flat *int
	// Cost, when not 0, is how many iterations an attempt takes at every level, instead of those
	// of pow.Ladder: a level cannot be told from a challenge then, so it is for a Flat one only.
	Cost int
	// Target is the number of anonymous writes a minute at the lowest price; each doubling beyond
	// it raises the level by one. Default 60.
	Target int
}

// An Issuer issues and checks challenges. It is safe for concurrent use.
type Issuer struct {
	c     Config
	slots chan struct{} // limits key derivations to half of the cores
	load  *load
	alike alike
	floor atomic.Int32 // least level of a challenge

	mu      sync.Mutex
	secrets map[string][]byte    // by day; guarded by mu
	burnt   map[string]time.Time // MACs that are used up without a write, until they expire; guarded by mu
}

// New returns an Issuer. It panics when an operation is paid for with a purpose that
// has no level: its proofs would cost nothing.
func New(c Config) *Issuer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Target == 0 {
		c.Target = 60
	}
	for _, op := range protocol.Operations() {
		if _, known := baseLevel[op.Purpose]; op.Purpose != "" && !known {
			panic(fmt.Sprintf("operation %s: no level for proofs of purpose %s: add one to baseLevel in identity/proof", op.Name, op.Purpose))
		}
	}
	return &Issuer{
		c: c, load: newLoad(c.Target),
		slots:   make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		secrets: map[string][]byte{}, burnt: map[string]time.Time{},
	}
}

// Issue returns a fresh challenge. Its level depends on the node's load and on what this client
// network has paid recently. The purpose must be one of the declared ones (protocol.PowInput).
func (i *Issuer) Issue(purpose, network string) pow.Challenge {
	return i.IssueAbove(purpose, network, 0)
}

// IssueAbove returns a fresh challenge that is also so many levels above the least one of its purpose
// (Above), as far as the ladder goes.
func (i *Issuer) IssueAbove(purpose, network string, steps int) pow.Challenge {
	now := i.c.Now()
	level := i.level(purpose, network, now)
	if i.c.Flat == nil {
		level = min(max(level, baseLevel[purpose]+steps), len(pow.Ladder)-1)
	}
	return i.issue(purpose, level, "", now)
}

func (i *Issuer) issue(purpose string, level int, text string, now time.Time) pow.Challenge {
	var random [32]byte
	rand.Read(random[:])
	step := pow.Ladder[level]
	step.Cost = cmp.Or(i.c.Cost, step.Cost)
	p := pow.Parameters{
		Algorithm: pow.Algorithm, Cost: step.Cost,
		Data:      pow.Data{Audience: i.c.Audience, KeyID: day(now), Purpose: purpose, Text: text},
		ExpiresAt: now.Add(Lifetime).Unix(), KeyLength: keyBytes, KeyPrefix: step.Prefix,
		Nonce: hex.EncodeToString(random[:16]), Salt: hex.EncodeToString(random[16:]),
	}
	return pow.Challenge{Parameters: p, Signature: p.MAC(i.secret(p.Data.KeyID)), Hint: &pow.Hint{Level: level, MeanTries: step.MeanTries()}}
}

// Check verifies a solution for a purpose and returns what must be spent, and what was solved.
// Cheap checks come first: shape, expiry, day, MAC, audience, purpose and level, claimed prefix,
// and only then the key derivation, which waits for a core at most two seconds. The level must be
// that of the network's current price, so that a store of challenges fetched at a low price is worth
// nothing. Errors are *protocol.Error with a pow-* code or overloaded.
func (i *Issuer) Check(ctx context.Context, raw []byte, purpose, network string) (protocol.Spend, pow.Parameters, error) {
	s, err := pow.Parse(raw)
	if err != nil {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid, "the proof of work cannot be read: %w", err)
	}
	p, now := s.Challenge.Parameters, i.c.Now()
	expires := time.Unix(p.ExpiresAt, 0)
	if now.After(expires) {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowExpired, "the challenge expired at %s; solve the fresh one",
			expires.UTC().Format(time.RFC3339))
	}
	if p.Data.KeyID != day(now) && p.Data.KeyID != day(now.Add(-Lifetime)) {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid, "the challenge was not issued by this node")
	}
	if !s.Challenge.Authentic(i.secret(p.Data.KeyID)) {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid, "the challenge was not issued by this node, or was changed")
	}
	if p.Data.Audience != i.c.Audience {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid, "the challenge was issued for %s", p.Data.Audience)
	}
	if p.Data.Purpose != AnyPurpose && p.Data.Purpose != purpose {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid, "the challenge has the purpose %s; this needs %s or %s",
			p.Data.Purpose, purpose, AnyPurpose)
	}
	if i.isBurnt(s.Challenge.Signature) {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowInvalid,
			"this challenge was already used, for a wrong solution or a text that costs more; solve the fresh one")
	}
	if !i.recent(p, network, now) {
		return protocol.Spend{}, pow.Parameters{}, protocol.Errorf(protocol.PowExpired,
			"writing costs more now than when this challenge was issued; solve the fresh one")
	}
	if err := i.derive(ctx, s); err != nil {
		return protocol.Spend{}, pow.Parameters{}, err
	}
	i.load.begin(network, now)
	return protocol.Spend{Key: spendKey(s.Challenge.Signature), Until: expires.Add(time.Minute), Code: protocol.PowSpent}, p, nil
}

func (i *Issuer) derive(ctx context.Context, s pow.Solution) error {
	wait := time.NewTimer(queueWait)
	defer wait.Stop()
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	case <-wait.C:
		return &protocol.Error{Code: protocol.Overloaded, Detail: "Too many proofs are waiting to be checked; try again.", RetryAfter: 2 * time.Second}
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Check() {
		return nil
	}
	// A wrong solution with a valid MAC burns the challenge, so that nobody can make the node
	// derive keys for free.
	i.burn(s.Challenge.Signature, time.Unix(s.Challenge.Parameters.ExpiresAt, 0))
	return protocol.Errorf(protocol.PowInvalid, "the solution does not solve the challenge; solve the fresh one")
}

// Use is Check of a proof that pays for work other than a write, for any purpose where that is "": it is used up at once, in this process.
// A proof that was spent by a write before still counts for one.
func (i *Issuer) Use(ctx context.Context, raw []byte, purpose, network string) error {
	_, p, err := i.Check(ctx, raw, cmp.Or(purpose, AnyPurpose), network)
	if err == nil && !i.burn(p.MAC(i.secret(p.Data.KeyID)), time.Unix(p.ExpiresAt, 0)) {
		err = protocol.Errorf(protocol.PowSpent, "the proof of work was used already; solve the fresh challenge")
	}
	return err
}

// spendKey returns bytes of the MAC: unique per challenge and unguessable.
func spendKey(mac string) (key [16]byte) {
	raw, err := hex.DecodeString(mac)
	if err != nil || len(raw) < len(key) {
		sum := sha256.Sum256([]byte(mac))
		raw = sum[:]
	}
	copy(key[:], raw)
	return key
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (i *Issuer) secret(kid string) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s, ok := i.secrets[kid]; ok {
		return s
	}
	s, err := hkdf.Key(sha256.New, i.c.Master, nil, "stoa proof of work "+kid, 32)
	if err != nil {
		panic(fmt.Sprintf("proof: derive secret: %v", err)) // lengths are constant
	}
	if len(i.secrets) > 4 {
		clear(i.secrets)
	}
	i.secrets[kid] = s
	return s
}

func (i *Issuer) isBurnt(mac string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, burnt := i.burnt[mac]
	return burnt
}

// burn uses up a challenge without a write. It reports whether it was not used up, and could be noted.
func (i *Issuer) burn(mac string, until time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, burnt := i.burnt[mac]; burnt {
		return false
	}
	if len(i.burnt) >= maxBurnt {
		now := i.c.Now()
		for m, t := range i.burnt {
			if t.Before(now) {
				delete(i.burnt, m)
			}
		}
		if len(i.burnt) >= maxBurnt {
			return false
		}
	}
	i.burnt[mac] = until
	return true
}
