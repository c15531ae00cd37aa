package proof

import (
	"cmp"
	"encoding/binary"
	"time"

	"stoa/protocol/sorting"
)

// A Usage is what one process reports to the others of a deployment, so that prices follow what
// all of them saw: how many proofs were accepted since the last report, and how often which texts
// were sent, as marks.
type Usage struct {
	All      int            `json:"all,omitempty"`
	Networks map[string]int `json:"networks,omitempty"`
	Texts    []TextUse      `json:"texts,omitempty"`
}

// A TextUse is how often each network sent similar texts.
type TextUse struct {
	Marks    []byte         `json:"marks"`
	Short    bool           `json:"short,omitempty"`
	Networks map[string]int `json:"networks"`
}

const (
	maxSharedNetworks = 1000
	maxSharedTexts    = 128 // the most repeated
)

// Empty reports whether there is nothing to report.
func (u Usage) Empty() bool { return u.All == 0 && len(u.Texts) == 0 }

// Share starts counting for [Issuer.Used], which must then be called often.
func (i *Issuer) Share() {
	i.load.mu.Lock()
	i.load.unshared = &Usage{Networks: map[string]int{}}
	i.load.mu.Unlock()
	i.alike.mu.Lock()
	i.alike.shared = true
	i.alike.mu.Unlock()
}

// Used returns what is to be reported since the last call.
func (i *Issuer) Used() Usage {
	u := i.load.drain()
	u.Texts = i.alike.drain()
	return u
}

// Add counts what another process reported.
func (i *Issuer) Add(u Usage) {
	now := i.c.Now()
	i.load.join(u, now)
	for _, t := range u.Texts {
		if text := t.text(); text != nil {
			i.alike.join(text, t.Networks, now)
		}
	}
}

func (l *load) drain() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unshared == nil {
		return Usage{}
	}
	u := *l.unshared
	l.unshared = &Usage{Networks: map[string]int{}}
	return u
}

// countShared counts one proof for the others; the caller holds the mutex.
func (l *load) countShared(network string) {
	if l.unshared == nil {
		return
	}
	l.unshared.All++
	if _, known := l.unshared.Networks[network]; known || len(l.unshared.Networks) < maxSharedNetworks {
		l.unshared.Networks[network]++
	}
}

func (l *load) join(u Usage, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(now)
	l.current += max(0, u.All)
	for network, n := range u.Networks {
		for range min(n, mostTimes) {
			l.note(network, now)
		}
	}
}

func (a *alike) drain() []TextUse {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []TextUse
	for _, g := range a.groups {
		if len(g.unshared) > 0 {
			t := TextUse{Short: g.short, Networks: g.unshared}
			for _, m := range g.marks {
				t.Marks = binary.BigEndian.AppendUint32(t.Marks, m)
			}
			all, g.unshared = append(all, t), nil
		}
	}
	sorting.Stable(all, func(x, y TextUse) int { return cmp.Compare(y.count(), x.count()) })
	return all[:min(len(all), maxSharedTexts)]
}

func (t TextUse) count() (all int) {
	for _, n := range t.Networks {
		all += n
	}
	return all
}

// text returns the reported text, nil if it is not valid.
func (t TextUse) text() *Text {
	if len(t.Marks) != 4*marks {
		return nil
	}
	text := &Text{short: t.Short}
	for i := range text.marks {
		text.marks[i] = binary.BigEndian.Uint32(t.Marks[4*i:])
	}
	return text
}

func (a *alike) join(t *Text, networks map[string]int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.group(t, now)
	for network, n := range networks {
		if n > 0 {
			g.add(network, n, now)
		}
	}
}
