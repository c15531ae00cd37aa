package federation

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/netx"
	"stoa/storage"
)

// The simulation of a whole network (docs/CAPACITY.md). Events on a virtual clock; when a delivery is repeated, when a log is read and when an
// outlet counts as dead is asked of the functions that the node asks. The rest is a model: one delivery at a time to an inbox, deliveries of a
// node limited by two cores and slotsInAll, reads of due logs by pullsAtOnce.

// An edge is that a node follows another one.
type edge struct {
	from, to int32 // the follower, and the node with the log
	outlet   storage.Outlet
	cursor   int64         // what the follower has
	pull     time.Duration // when it reads the log next
	failures int           // of reads
	sending  bool
	queued   bool // it has a read in its node's queue
}

type netNode struct {
	dead, hole bool
	posts      []time.Duration // times of the entries
	in, out    []*edge         // followers; followed
	free       time.Duration   // when its processor is free
	reading    int
	queue      []*edge
}

// An event is something that happens at a time.
type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any          { last := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return last }

// A netSim is a network of nodes. Node 0 is followed by all.
type netSim struct {
	r      *rand.Rand
	now    time.Duration
	events events
	nodes  []*netNode
	edges  int

	lags                  []time.Duration // of living followers
	pushes, failed, reads int
	failedReads           int
	first                 map[int64]int // reads of the log of node 0, by second
	pushed                int           // deliveries of node 0
}

func (n *netSim) after(d time.Duration, do func()) { heap.Push(&n.events, event{n.now + d, do}) }

func (n *netSim) latency() time.Duration {
	return time.Duration(float64(80*time.Millisecond) * math.Exp(0.8*n.r.NormFloat64()))
}

const (
	netFollows   = 20               // boards that a node follows beside that of node 0
	netPostEvery = 10 * time.Minute // of a node
	netPostFirst = time.Minute      // of node 0
)

func newNetSim(nodes int) *netSim {
	n := &netSim{r: rand.New(rand.NewPCG(5, 6)), first: map[int64]int{}}
	for range nodes {
		n.nodes = append(n.nodes, &netNode{})
	}
	zipf := rand.NewZipf(n.r, 1.2, 10, uint64(nodes-1))
	for i, node := range n.nodes {
		seen := map[int]bool{i: true}
		for k := 0; k <= min(netFollows, nodes-2); {
			to := 0
			if k > 0 {
				to = int(zipf.Uint64())
			}
			if seen[to] {
				if k == 0 {
					k++
				}
				continue
			}
			seen[to] = true
			k++
			e := &edge{from: int32(i), to: int32(to), outlet: storage.Outlet{Stoa: true}}
			node.out, n.nodes[to].in = append(node.out, e), append(n.nodes[to].in, e)
			n.edges++
			n.pullAt(e, time.Duration(n.r.Int64N(int64(heartbeat))))
		}
	}
	for i := range n.nodes {
		every := netPostEvery
		if i == 0 {
			every = netPostFirst
		}
		n.after(time.Duration(n.r.Int64N(int64(every))), func() { n.post(i, every) })
	}
	return n
}

func (n *netSim) post(i int, every time.Duration) {
	node := n.nodes[i]
	if !node.dead {
		node.posts = append(node.posts, n.now)
		for _, e := range node.in {
			n.push(e)
		}
	}
	n.after(time.Duration(float64(every)*n.r.ExpFloat64()), func() { n.post(i, every) })
}

// push delivers the newest entry to a follower that is behind, unless that waits or is under way.
func (n *netSim) push(e *edge) {
	node := n.nodes[e.to]
	if e.sending || node.dead || n.now < time.Duration(e.outlet.NextAt.UnixNano()) || e.outlet.Cursor >= int64(len(node.posts)) {
		return
	}
	e.sending = true
	node.free = max(node.free, n.now) + max(simEd/simCores, 80*time.Millisecond/slotsInAll)
	n.after(node.free-n.now, func() {
		head := int64(len(node.posts))
		n.pushes++
		if e.to == 0 {
			n.pushed++
		}
		d := n.latency()
		if n.nodes[e.from].dead && n.nodes[e.from].hole {
			d = fetchTimeout
		}
		n.after(d, func() { n.pushedTo(e, head) })
	})
}

func (n *netSim) pushedTo(e *edge, head int64) {
	e.sending = false
	if n.nodes[e.from].dead {
		n.failed++
		pause, state := afterFailure(e.outlet, 0)
		e.outlet.Failures++
		e.outlet.State, e.outlet.NextAt = state, time.Unix(0, int64(n.now+pause))
		n.after(pause, func() { n.push(e) })
		return
	}
	e.outlet = storage.Outlet{Stoa: true, Cursor: max(e.outlet.Cursor, head), NextAt: time.Unix(0, 0)}
	switch {
	case head == e.cursor+1:
		n.take(e, head)
		n.pullAt(e, min(e.pull, n.now+netx.Jitter(compareAfter)))
	case head > e.cursor:
		n.read(e)
	}
	n.push(e)
}

// take applies the entries up to one.
func (n *netSim) take(e *edge, head int64) {
	for _, at := range n.nodes[e.to].posts[e.cursor:head] {
		n.lags = append(n.lags, n.now-at)
	}
	e.cursor = head
}

// pullAt has a follower read the log at a time.
func (n *netSim) pullAt(e *edge, at time.Duration) {
	if at == e.pull {
		return
	}
	e.pull = at
	n.after(max(0, at-n.now), func() {
		if e.pull == at {
			n.read(e)
		}
	})
}

// read puts the read of a log into the queue of the node that follows.
func (n *netSim) read(e *edge) {
	node := n.nodes[e.from]
	if node.dead || e.queued {
		return
	}
	e.queued, e.pull = true, 0
	node.queue = append(node.queue, e)
	n.readNext(node)
}

func (n *netSim) readNext(node *netNode) {
	for node.reading < pullsAtOnce && len(node.queue) > 0 && !node.dead {
		e := node.queue[0]
		node.queue = node.queue[1:]
		node.reading++
		board := n.nodes[e.to]
		n.reads++
		if e.to == 0 && !board.dead {
			n.first[int64(n.now/time.Second)]++
		}
		d := 5 * n.latency() // the page, checkpoint, bundle, tiles and salts
		if board.dead && board.hole {
			d = fetchTimeout
		}
		n.after(d, func() {
			node.reading--
			e.queued = false
			switch {
			case node.dead:
				return
			case board.dead:
				n.failedReads++
				e.failures++
				n.pullAt(e, n.now+pullPause(e.failures))
			default:
				e.failures = 0
				n.take(e, int64(len(board.posts)))
				n.pullAt(e, n.now+nextHeartbeat())
				e.outlet.NextAt = time.Unix(0, 0) // a signed request: Outlets.WakeHost
				n.push(e)
			}
			n.readNext(node)
		})
	}
}

// kill stops a tenth of the nodes, of which half do not even refuse connections; revive starts them, and they read all that they follow.
func (n *netSim) kill() {
	for i, node := range n.nodes {
		if i%10 == 9 {
			node.dead, node.hole = true, i%20 == 9
		}
	}
}

func (n *netSim) revive() {
	for _, node := range n.nodes {
		if !node.dead {
			continue
		}
		node.dead, node.reading, node.queue = false, 0, nil
		for _, e := range node.out {
			e.queued = false
			n.read(e)
		}
		for _, e := range node.in {
			n.push(e)
		}
	}
}

// run runs until a time, and returns what happened in that while.
func (n *netSim) run(d time.Duration) string {
	n.lags, n.pushes, n.failed, n.reads, n.failedReads, n.pushed = nil, 0, 0, 0, 0, 0
	clear(n.first)
	end := n.now + d
	for len(n.events) > 0 && n.events[0].at <= end {
		e := heap.Pop(&n.events).(event)
		n.now = e.at
		e.do()
	}
	n.now = end
	slices.Sort(n.lags)
	most, all := 0, 0
	for _, k := range n.first {
		most, all = max(most, k), all+k
	}
	s, nodes := d.Seconds(), float64(len(n.nodes))
	return fmt.Sprintf("lag median %v, 95 %% %v, 99 %% %v, worst %v of %d; a node sends %.3f/s, of them failed %.1f %%, and reads %.3f logs/s, failed %.1f %%; "+
		"the first sends %.1f/s, its log is read %.1f/s, in a second at most %d",
		share(n.lags, .5), share(n.lags, .95), share(n.lags, .99), share(n.lags, 1), len(n.lags),
		float64(n.pushes)/s/nodes, 100*float64(n.failed)/float64(max(1, n.pushes)), float64(n.reads)/s/nodes, 100*float64(n.failedReads)/float64(max(1, n.reads)),
		float64(n.pushed)/s, float64(all)/s, most)
}

// behind is how many followers do not have everything.
func (n *netSim) behind() (behind int) {
	for _, node := range n.nodes {
		for _, e := range node.in {
			if e.cursor < int64(len(node.posts)) {
				behind++
			}
		}
	}
	return behind
}

// Every post reaches every node of a network that lives, and those that return have everything soon.
func TestSimulation_Network(t *testing.T) {
	t.Parallel()
	for _, nodes := range simSizes(t) {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			wall := time.Now()
			n := newNetSim(nodes)
			n.run(20 * time.Minute)
			t.Logf("%d follow; all live: %s", n.edges, n.run(10*time.Minute))
			n.kill()
			t.Logf("a tenth dies: %s", n.run(time.Minute))
			t.Logf("and is dead: %s", n.run(20*time.Minute))
			n.revive()
			for _, d := range []time.Duration{10 * time.Second, 50 * time.Second, 4 * time.Minute, 15 * time.Minute} {
				t.Logf("after it returned, %v: %s; behind %d of %d", d, n.run(d), n.behind(), n.edges)
			}
			require.Less(t, n.behind(), max(10, n.edges/1000))
			t.Logf("took %v", time.Since(wall))
		})
	}
}
