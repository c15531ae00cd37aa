package paytest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"

	"stoa/node/out/pay"
)

// emit makes a webhook and signs it with the secret of now: retries are not signed again.
func (s *Razorpay) emit(event string, payload map[string]any) {
	contains := slices.Sorted(maps.Keys(payload))
	wrapped := map[string]any{}
	for _, name := range contains {
		wrapped[name] = map[string]any{"entity": payload[name]}
	}
	body, err := json.Marshal(map[string]any{
		"entity": "event", "account_id": "acc_Fake0000000000", "event": event, "contains": contains, "payload": wrapped, "created_at": s.Now().Unix(),
	})
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	s.pending = append(s.pending, Hook{Body: body, Header: http.Header{
		"Content-Type":         {"application/json"},
		"X-Razorpay-Event-Id":  {s.id("evt")},
		"X-Razorpay-Signature": {pay.MAC(s.secret, body)},
	}})
}

// SetSecret changes the webhook secret for the events of the future.
func (s *Razorpay) SetSecret(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = secret
}

// Hooks returns the webhooks that wait for delivery, oldest first, and forgets them: to be delivered
// late, in another order, again, or never.
func (s *Razorpay) Hooks() []Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	hooks := s.pending
	s.pending = nil
	return hooks
}

// A Mischief is how a delivery differs from one in order. The zero value delivers each once, in order.
type Mischief struct {
	Rand    *rand.Rand // nil for none of the following
	Double  float64    // share that is delivered twice
	Lose    float64    // share that is never delivered: the poller has to find them
	Delay   float64    // share that waits for the next Deliver
	Shuffle bool
}

// Deliver posts the waiting webhooks to address. One that is not answered with 2xx waits for the next
// call, as with the vendor. It returns how many were accepted.
func (s *Razorpay) Deliver(ctx context.Context, client *http.Client, address string, m Mischief) (accepted int) {
	hooks := s.Hooks()
	var later []Hook
	if r := m.Rand; r != nil {
		var now []Hook
		for _, h := range hooks {
			switch x := r.Float64(); {
			case x < m.Lose:
			case x < m.Lose+m.Delay:
				later = append(later, h)
			case x < m.Lose+m.Delay+m.Double:
				now = append(now, h, h)
			default:
				now = append(now, h)
			}
		}
		if hooks = now; m.Shuffle {
			r.Shuffle(len(hooks), func(i, j int) { hooks[i], hooks[j] = hooks[j], hooks[i] })
		}
	}
	for _, h := range hooks {
		if post(ctx, client, address, h) {
			accepted++
		} else {
			later = append(later, h)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(later, s.pending...)
	return accepted
}

func post(ctx context.Context, client *http.Client, address string, h Hook) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(h.Body))
	if err != nil {
		return false
	}
	r.Header = h.Header.Clone()
	res, err := client.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	return res.StatusCode >= 200 && res.StatusCode <= 299
}
