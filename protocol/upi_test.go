package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestIsVPA(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"asha@okbank", "9876543210@ybl", "asha.rao-1_x@okhdfcbank", "ab@cd", strings.Repeat("a", 256) + "@b" + strings.Repeat("1", 63)} {
		require.True(t, IsVPA(s), s)
	}
	for _, s := range []string{
		"", "@", "a@okbank", "asha@", "asha@o", "asha@1bank", "asha@ok.bank", "asha@ok@bank", "asha okbank", "asha@okbank ", "asha@okbank\n", "asha&am=1@okbank",
		"आशा@okbank", strings.Repeat("a", 257) + "@bank", "ab@b" + strings.Repeat("1", 64),
	} {
		require.False(t, IsVPA(s), s)
	}
}

func TestIsUTR(t *testing.T) {
	t.Parallel()
	require.True(t, IsUTR("432198760155"))
	require.Equal(t, "432198760155", FoldUTR("\t4321 9876\u00a00155\n"))
	for _, s := range []string{"", "43219876015", "4321987601550", "43219876015x", "111111111111", "०१२३४५६७८९०१", "432198760155\n"} {
		require.False(t, IsUTR(s), s)
	}
}

// FuzzVPA: what is accepted is plain ASCII that needs no encoding in a link.
func FuzzVPA(f *testing.F) {
	f.Add("asha@okbank")
	f.Add("asha@okbank?am=1")
	f.Fuzz(func(t *testing.T, s string) {
		if !IsVPA(s) {
			return
		}
		require.LessOrEqual(t, len(s), 256+1+64)
		require.Equal(t, 1, strings.Count(s, "@"))
		require.False(t, strings.ContainsAny(s, "&?#%+= \r\n\"<>"))
		require.Equal(t, len(s), utf8.RuneCountInString(s))
	})
}
