package web

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/a-h/templ/generator"
	parser "github.com/a-h/templ/parser/v2"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestGenerated fails when the Go code of a template is stale, or was made by
// another version of the generator than the one that go.mod names.
func TestGenerated(t *testing.T) {
	t.Parallel()
	templates := must.Get(filepath.Glob("*.templ"))(t)
	require.NotEmpty(t, templates)
	lines := 0
	for _, name := range templates {
		parsed, err := parser.Parse(name)
		require.NoError(t, err, name)
		var b bytes.Buffer
		require.NoError(t, must.Err(generator.Generate(parsed, &b, generator.WithVersion(templ.Version()), generator.WithFileName(name))), name)
		fresh, err := format.Source(b.Bytes())
		require.NoError(t, err, name)
		committed := must.Get(os.ReadFile(strings.TrimSuffix(name, ".templ") + "_templ.go"))(t)
		require.Equal(t, string(fresh), string(committed), "%s is stale: run make generate", name)
		lines += bytes.Count(committed, []byte("\n"))
	}
	require.LessOrEqual(t, lines, 25_000, "lines of the Go code of the pages: an element that stands often is a component")
	made := must.Get(filepath.Glob("*_templ.go"))(t)
	require.Len(t, made, len(templates), "Go code without its template")
}
