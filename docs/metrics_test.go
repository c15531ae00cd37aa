package docs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	declares = regexp.MustCompile(`(?:const name = |(?:series|Gauge|Counter|IfNeeded|Float64|Uint64|each)\((?:w, )?)"(stoa_[a-z_]+[a-z])[{"]`)
	metric   = regexp.MustCompile(`\bstoa_[a-z_]+[a-z]\b`)
	selector = regexp.MustCompile(`\b(stoa_[a-z_]+[a-z])\{([^}]*)\}`)
	label    = regexp.MustCompile(`([a-z_]+)(?:=|!=|=~|!~)"`)
)

// TestMetrics: every metric is in OPERATIONS.md, and the alerts and the dashboard name metrics and labels that there are.
func TestMetrics(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "node"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range declares.FindAllStringSubmatch(string(source), -1) {
			declared[name[1]] = true
		}
		return err
	}))
	require.Greater(t, len(declared), 15)
	operations := text(t, "docs/OPERATIONS.md")
	labels := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`stoa_[^|]*)\\| ([^|]*)\\|").FindAllStringSubmatch(operations, -1) {
		for _, name := range metric.FindAllString(row[1], -1) {
			labels[name] = row[2]
		}
	}
	shared := regexp.MustCompile("`(stoa_feed_stream_)wakes_total`, `…([a-z_]+)`, `…([a-z_]+)`")
	for _, more := range shared.FindAllStringSubmatch(operations, -1) {
		labels[more[1]+strings.TrimPrefix(more[2], "_")], labels[more[1]+strings.TrimPrefix(more[3], "_")] = "", ""
	}
	for name := range declared {
		_, said := labels[name]
		require.True(t, said, "docs/OPERATIONS.md does not say what %s means", name)
	}
	alerts, dashboard := text(t, "docs/deploy/monitoring/alerts.yaml"), text(t, "docs/deploy/monitoring/grafana.json")
	require.True(t, json.Valid([]byte(dashboard)))
	for _, of := range []string{alerts, strings.ReplaceAll(dashboard, `\"`, `"`)} {
		used := metric.FindAllString(of, -1)
		require.NotEmpty(t, used)
		for _, name := range used {
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, part)
			}
			require.True(t, declared[name], "there is no metric %s", name)
		}
		for _, one := range selector.FindAllStringSubmatch(of, -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(one[1], "_bucket"), "_count")
			for _, l := range label.FindAllStringSubmatch(one[2], -1) {
				require.True(t, l[1] == "instance" || strings.Contains(labels[name], "`"+l[1]+"`"), "%s has no label %s", name, l[1])
			}
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(raw)
}
