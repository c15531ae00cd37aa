package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestHolder_ChangedSince(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	later, earlier := at.Add(time.Hour), at.Add(-time.Hour)
	moved := protocol.Holder{Owner: "0xb", Since: at, Exact: true, Moved: 50}
	seen := protocol.Holder{Owner: "0xb", Since: at, Moved: 50}
	enrolled := protocol.Holder{Owner: "0xb", Since: at, Current: true}
	by := func(owner string, block int64) protocol.AuthorProof {
		return protocol.AuthorProof{Owner: &owner, Block: &block, CheckedAt: &earlier}
	}
	for name, c := range map[string]struct {
		h    protocol.Holder
		p    protocol.AuthorProof
		want bool
	}{
		"nothing is known":                       {protocol.Holder{}, by("0xa", 40), false},
		"sold":                                   {moved, by("0xa", 40), true},
		"sold, and bought back":                  {moved, by("0xb", 40), true},
		"written by the buyer":                   {moved, by("0xb", 50), false},
		"written by a buyer whom nobody saw buy": {moved, by("0xc", 60), false},
		"another owner was seen":                 {seen, by("0xa", 40), true},
		"the same was seen":                      {seen, by("0xb", 40), false},
		"enrolled by another":                    {enrolled, by("0xa", 40), true},
		"enrolled by the same":                   {enrolled, by("0xb", 40), false},
		"no block, sold":                         {moved, protocol.AuthorProof{Owner: new("0xa")}, true},
		"no block, the same":                     {moved, protocol.AuthorProof{Owner: new("0xb")}, false},
		"by a profile, sold":                     {moved, protocol.AuthorProof{CheckedAt: &earlier}, true},
		"by a profile of the buyer":              {moved, protocol.AuthorProof{CheckedAt: &later}, false},
		"by a profile, enrolled":                 {enrolled, protocol.AuthorProof{CheckedAt: &earlier}, false},
		"by a profile, long ago":                 {moved, protocol.AuthorProof{}, false},
	} {
		require.Equal(t, c.want, c.h.ChangedSince(c.p), name)
	}
}
