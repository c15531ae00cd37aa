package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"sync"
	"time"
	"unicode"

	"stoa/protocol"
)

// How similar texts are recognised. A shingle is a few consecutive letters; two texts are alike
// when half of their shingles are the same, as estimated by the marks of a MinHash (Broder 1997).
// Texts of one language with different content share less than a tenth.
const (
	shingle   = 5  // letters
	marks     = 64 // of a text; the estimate has an error of 0.06 at one half
	alikeFrom = marks / 2
	short     = 24 // letters; shorter texts (greetings) are always alike

	maxGroups   = 2048 // texts that are remembered, each with everything that is like it
	maxNetworks = 32   // of one group
	half        = 10 * time.Minute
)

// A Text is the content of a write, as far as its similarity to others matters.
type Text struct {
	digest string // of the exact text
	marks  [marks]uint32
	short  bool
}

// NewText parses a text. Case, spaces, punctuation and invisible characters do not affect its
// similarity. It costs some 10 ns per letter and mark.
func NewText(s string) *Text {
	sum := sha256.Sum256([]byte("stoa text\x00" + s))
	t := &Text{digest: hex.EncodeToString(sum[:16])}
	letters := make([]rune, 0, len(s))
	for _, r := range s {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) && protocol.Shown(r) {
			letters = append(letters, unicode.ToLower(r))
		}
	}
	if len(letters) == 0 {
		letters = []rune(s)
	}
	t.short = len(letters) < short
	for i := range t.marks {
		t.marks[i] = math.MaxUint32
	}
	for from := 0; from == 0 || from+shingle <= len(letters); from++ {
		h := hash(letters[from:min(from+shingle, len(letters))])
		for i := range t.marks {
			h = mix(h + uint64(i))
			t.marks[i] = min(t.marks[i], uint32(h>>32))
		}
	}
	return t
}

// hash returns the FNV-1a of the letters.
func hash(letters []rune) uint64 {
	h := uint64(14695981039346656037)
	for _, r := range letters {
		h = (h ^ uint64(r)) * 1099511628211
	}
	return h
}

// mix is the finaliser of SplitMix64: each step gives another hash function.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func (t *Text) like(other *[marks]uint32) int {
	same := 0
	for i, m := range t.marks {
		if m == other[i] {
			same++
		}
	}
	return same
}

// alike remembers recent texts in groups of similar ones, and how often each was sent: a number
// that halves every ten minutes. A process remembers its own and those that others report; like
// load, it affects a price and limits nothing.
type alike struct {
	mu     sync.Mutex // guards all below
	groups []*group
	shared bool // additions are to be reported to other processes
}

// A group is a text and those that are like it. Its marks are those of the first text: after many
// small edits a text leaves the group and begins another.
type group struct {
	marks    [marks]uint32
	short    bool
	all      tally
	networks map[string]*tally
	unshared map[string]int // how often networks sent it, not yet reported to other processes
}

// A tally is a number that halves in a fixed time.
type tally struct {
	n  float64
	at time.Time
}

func (t *tally) value(now time.Time) float64 {
	if t == nil {
		return 0
	}
	return t.n * math.Exp2(-float64(max(0, now.Sub(t.at)))/float64(half))
}

func (t *tally) add(n int, now time.Time) { t.n, t.at = t.value(now)+float64(n), now }

// steps returns how many levels to add for a text: one for each time that the network sent a
// similar one, and one for each doubling of the times that anyone did. For short texts only the
// network's own count matters.
func (a *alike) steps(t *Text, network string, now time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.find(t)
	if g == nil {
		return 0
	}
	n := int(g.networks[network].value(now) + 0.5)
	if !t.short {
		n += int(math.Log2(1+g.all.value(now)) + 0.5)
	}
	return n
}

func (a *alike) add(t *Text, network string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.group(t, now)
	g.add(network, 1, now)
	if a.shared && (len(g.unshared) < maxNetworks || g.unshared[network] > 0) {
		if g.unshared == nil {
			g.unshared = map[string]int{}
		}
		g.unshared[network]++
	}
}

// group returns the group of a text, and creates it if necessary.
func (a *alike) group(t *Text, now time.Time) *group {
	g := a.find(t)
	if g == nil {
		g = &group{marks: t.marks, short: t.short, networks: map[string]*tally{}}
		if len(a.groups) < maxGroups {
			a.groups = append(a.groups, g)
		} else {
			a.groups[a.lightest(now)] = g
		}
	}
	return g
}

func (g *group) add(network string, n int, now time.Time) {
	g.all.add(n, now)
	own := g.networks[network]
	if own == nil {
		if len(g.networks) >= maxNetworks {
			g.forget(now)
		}
		own = &tally{}
		g.networks[network] = own
	}
	own.add(n, now)
}

func (a *alike) find(t *Text) *group {
	var best *group
	most := alikeFrom - 1
	for _, g := range a.groups {
		if n := t.like(&g.marks); n > most {
			best, most = g, n
		}
	}
	return best
}

// lightest returns the group with the lowest count.
func (a *alike) lightest(now time.Time) int {
	at, least := 0, math.Inf(1)
	for i, g := range a.groups {
		if w := g.all.value(now); w < least {
			at, least = i, w
		}
	}
	return at
}

// forget removes the network with the lowest count.
func (g *group) forget(now time.Time) {
	lightest, least := "", math.Inf(1)
	for network, t := range g.networks {
		if w := t.value(now); w < least {
			lightest, least = network, w
		}
	}
	delete(g.networks, lightest)
}
