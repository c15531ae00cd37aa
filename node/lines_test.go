package node_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// structTag finds a field whose tag makes the line long: Go allows no line break in a tag.
var structTag = regexp.MustCompile("`\\w+:\"[^`]*`\\s*(//.*)?$")

// TestLines checks that no line of hand-written Go is longer than 160 characters.
func TestLines(t *testing.T) {
	t.Parallel()
	const most = 160
	list := exec.Command("git", "ls-files", "*.go")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Skip("not a git checkout: ", err)
	}
	files := 0
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile("../" + name)
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(text), "\npackage ")
		if strings.Contains(head, "DO NOT EDIT") {
			continue
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > most && !structTag.MatchString(line) {
				t.Errorf("%s:%d has %d characters: at most %d", name, i+1, n, most)
			}
		}
	}
	require.Greater(t, files, 300)
}
