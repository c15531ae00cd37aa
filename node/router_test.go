package node

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A second handler of a path stops the start; one of them would never be called.
func TestMux_Twice(t *testing.T) {
	t.Parallel()
	m, h := newMux(nil, nil), http.NotFoundHandler()
	m.handle("GET", "/a/:id", h)
	m.handle("POST", "/a/:id", h)
	m.handle("GET", "/a", h)
	for _, again := range [][2]string{{"GET", "/a/:id"}, {"HEAD", "/a"}, {"POST", "/a/:other"}} {
		require.Panics(t, func() { m.handle(again[0], again[1], h) }, again)
	}
}
