package feed

import "stoa/protocol"

// seats are the connections that a process keeps open at a time for one thing: by network, and shared between known
// callers and strangers by the rule of protocol.Shared. Whose they are guards them with its mutex.
type seats struct {
	taken    protocol.Waiting
	networks map[string]int
}

func newSeats() seats { return seats{networks: map[string]int{}} }

func (s *seats) count() int { return s.taken.Known + s.taken.Strangers }

// take takes a place of most, and fails with overloaded when there is none for this caller. leave gives it back.
func (s *seats) take(most int, network string, known bool) error {
	full := func(detail string) error {
		return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: retryStream}
	}
	switch shared := (protocol.Shared{Most: most}); {
	case s.networks[network] >= maxNetworkStreams:
		return full("your network has as many open connections of this kind as one network may have; close one")
	case shared.Full(true, s.taken):
		return full("this node keeps as many connections of this kind open as it can; try again")
	case shared.Full(known, s.taken):
		return full("the places for unknown callers are taken; sign the request, sign in, or try again")
	}
	s.add(network, known, 1)
	return nil
}

func (s *seats) leave(network string, known bool) { s.add(network, known, -1) }

func (s *seats) add(network string, known bool, n int) {
	if known {
		s.taken.Known += n
	} else {
		s.taken.Strangers += n
	}
	if s.networks[network] += n; s.networks[network] == 0 {
		delete(s.networks, network)
	}
}
