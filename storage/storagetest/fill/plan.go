package fill

import (
	"math/rand/v2"

	"stoa/protocol"
)

// A plan says how the posts hang together. It is made for all of them before the
// first is written, so that a post knows its replies and what resolves it.
type plan struct {
	kind       []uint8 // index into protocol.PostKinds
	parent     []int32 // -1: begins a thread
	root       []int32 // -1: begins a thread
	author     []int32 // number of the profile; -1: a visitor
	replies    []int32
	resolvedBy []int32 // -1: nothing does
}

// weights of the kinds in hundredths, for posts and for replies.
var (
	postWeights  = [...]int{28, 16, 6, 0, 26, 14, 10}
	replyWeights = [...]int{4, 26, 2, 14, 24, 10, 20}
)

const (
	visitors  = 0.35 // share of posts without a key or account
	answering = 0.40 // share of posts that reply
	settling  = 0.40 // share of replies to an open post that are its author's resolution
	recent    = 400  // how far back a reply mostly reaches
	busyEvery = 20_000
	busyFor   = 5000 // every busyEvery posts, one draws many replies for so long
)

func newPlan(c Config) *plan {
	n := c.Posts
	p := &plan{make([]uint8, n), make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)}
	r := rand.New(rand.NewPCG(c.Seed, 0x5eed))
	authors := newZipf(c.Profiles)
	for i := range n {
		p.parent[i], p.root[i], p.author[i], p.resolvedBy[i] = -1, -1, -1, -1
		if c.Profiles > 0 && r.Float64() >= visitors {
			p.author[i] = int32(authors.rank(r.Float64()))
		}
		p.kind[i] = draw(r, postWeights[:])
		if i > 0 && r.Float64() < answering {
			p.answer(r, i)
		}
	}
	return p
}

// answer makes post i a reply to an earlier one.
func (p *plan) answer(r *rand.Rand, i int) {
	to := max(0, i-1-int(r.ExpFloat64()*recent/4))
	if busy := i - i%busyEvery; i > busy && i-busy < busyFor && r.IntN(5) == 0 {
		to = busy
	}
	p.kind[i] = draw(r, replyWeights[:])
	p.parent[i], p.root[i] = int32(to), p.root[to]
	if p.root[i] < 0 {
		p.root[i] = int32(to)
	}
	p.replies[to]++
	if !protocol.PostKinds[p.kind[to]].Resolvable() || p.author[to] < 0 {
		return
	}
	if r.Float64() < settling {
		p.author[i], p.kind[i] = p.author[to], resolution
	}
	if p.author[i] == p.author[to] && p.kind[i] == resolution && p.resolvedBy[to] < 0 {
		p.resolvedBy[to] = int32(i)
	}
}

const resolution = 3 // of protocol.PostKinds

func draw(r *rand.Rand, weights []int) uint8 {
	n := r.IntN(100)
	for i, w := range weights {
		if n -= w; n < 0 {
			return uint8(i)
		}
	}
	return 0
}
