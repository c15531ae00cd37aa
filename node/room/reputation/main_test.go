package reputation_test

import (
	"testing"

	"stoa/node/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }
