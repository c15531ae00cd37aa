package dispatch

import (
	"slices"
	"time"
)

// A Use is what one key of a limit took in one process, since it last told.
type Use struct {
	Limit string `json:"limit"` // read, write or identity
	Key   string `json:"key"`
	N     int    `json:"n"`
}

const (
	// What is less than this part of a rate is not told: a caller that stays below
	// it at as many processes has, over all, no more than the rate.
	told    = 8
	maxUses = 1000
	// maxDebt bounds how long a caller waits for what it took from others.
	maxDebt = time.Minute
)

// Share begins to count for [Limits.Used], which is then called often. Limits
// that are shared are those of all processes together, within what a burst at
// each takes until the others are told.
func (l *Limits) Share() {
	l.shared.Store(true)
	for _, p := range l.each() {
		p.Load().shared.Store(true)
	}
}

// Used is what was taken since the last call, of those who took enough to matter,
// the busiest thousand.
func (l *Limits) Used(since time.Duration) []Use {
	var uses []Use
	for name, p := range l.each() {
		g := p.Load()
		for key, n := range g.drain() {
			if float64(n*told) > g.rate.PerSecond*since.Seconds() {
				uses = append(uses, Use{name, key, n})
			}
		}
	}
	slices.SortFunc(uses, func(a, b Use) int { return b.N - a.N })
	return uses[:min(len(uses), maxUses)]
}

// Add counts what other processes gave.
func (l *Limits) Add(uses []Use) {
	each := l.each()
	for _, u := range uses {
		if p := each[u.Limit]; p != nil && u.N > 0 {
			p.Load().add(u.Key, u.N)
		}
	}
}

// drain takes what was counted.
func (g *gcra) drain() map[string]int {
	all := map[string]int{}
	for i := range g.parts {
		p := &g.parts[i]
		p.Lock()
		for key, n := range p.used {
			all[key] = n
		}
		clear(p.used)
		p.Unlock()
	}
	return all
}

// add takes n for a key without asking.
func (g *gcra) add(key string, n int) {
	now := time.Now().UnixNano()
	p := g.part(key)
	p.Lock()
	defer p.Unlock()
	if _, known := p.tat[key]; !known && len(p.tat) >= shardCap {
		return
	}
	n = min(n, 1<<20)
	most := now + int64(g.burst)*int64(g.interval) + int64(maxDebt)
	p.tat[key] = max(p.tat[key], min(most, max(p.tat[key], now)+int64(n)*int64(g.interval)))
}
