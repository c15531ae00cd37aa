package hall

import (
	"time"

	"stoa/protocol/sorting"
)

// A Use is what one key of a limit used in one process since the last report.
type Use struct {
	Limit string `json:"limit"` // read, write or identity
	Key   string `json:"key"`
	N     int    `json:"n"`
}

const (
	// Less than this fraction of a rate is not reported: a caller that stays below it on that many
	// processes has, in total, no more than the rate.
	leastShare = 8
	maxUses    = 1000
	// maxDebt bounds how long a caller waits for what it used on other processes.
	maxDebt = time.Minute
)

// Share starts counting for [Limits.Used], which must then be called often. Shared limits apply to
// all processes together, plus at most one burst per process until the others have been told.
func (l *Limits) Share() {
	l.shared.Store(true)
	for _, p := range l.each() {
		p.Load().shared.Store(true)
	}
}

// Used returns what was used since the last call by those who used enough to matter: at most the
// busiest thousand.
func (l *Limits) Used(since time.Duration) []Use {
	var uses []Use
	for name, p := range l.each() {
		g := p.Load()
		for key, n := range g.drain() {
			if float64(n*leastShare) > g.rate.PerSecond*since.Seconds() {
				uses = append(uses, Use{name, key, n})
			}
		}
	}
	sorting.Stable(uses, func(a, b Use) int { return b.N - a.N })
	return uses[:min(len(uses), maxUses)]
}

// Add counts what other processes reported.
func (l *Limits) Add(uses []Use) {
	each := l.each()
	for _, u := range uses {
		if p := each[u.Limit]; p != nil && u.N > 0 {
			p.Load().add(u.Key, u.N)
		}
	}
}

// drain returns and resets the counts.
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

// add counts n for a key without checking the limit.
func (g *gcra) add(key string, n int) {
	now := time.Now().UnixNano()
	p := g.part(key)
	p.Lock()
	defer p.Unlock()
	if !p.free.Room(key, now) {
		return
	}
	free := p.free.Free(key)
	next, _ := g.cell.Take(free, now, float64(min(n, 1<<20)))
	most := now + int64(g.cell.Burst)*int64(g.cell.Every) + int64(maxDebt)
	p.free.Set(key, max(free, min(most, next)))
}
