package main

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTuneCollector(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	for name, tt := range map[string]struct {
		gogc, gomemlimit string
		setting          uint32
		percent          int
		limit            int64
	}{
		"as it is":                      {setting: 1024, percent: gcPercent, limit: 1 << 30},
		"no limit":                      {percent: gcPercent, limit: math.MaxInt64},
		"GOGC of the environment":       {gogc: "50", setting: 1024, percent: 100, limit: 1 << 30},
		"GOMEMLIMIT of the environment": {gomemlimit: "64MiB", setting: 1024, percent: gcPercent, limit: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", tt.gogc)
			t.Setenv("GOMEMLIMIT", tt.gomemlimit)
			debug.SetGCPercent(100)
			debug.SetMemoryLimit(math.MaxInt64)
			tuneCollector(tt.setting)
			require.Equal(t, tt.limit, debug.SetMemoryLimit(-1))
			require.Equal(t, tt.percent, debug.SetGCPercent(100))
		})
	}
}
