// Package docs_test checks the documents of the repository: their links lead
// somewhere, and nothing in them belongs to one machine.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

const root = ".."

// documents returns the Markdown files of the repository, as paths from its
// root. What npm installed, local data and hidden folders are none of ours.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "node_modules" || d.Name() == "data" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			rel, err := filepath.Rel(root, path)
			found = append(found, rel)
			return err
		}
		return nil
	}))
	require.Contains(t, found, "README.md")
	return found
}

// A document is a Markdown file without its code: the anchors of its headings
// and the targets of its links.
type document struct {
	anchors map[string]bool
	links   []string
}

var (
	link   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	inline = regexp.MustCompile("`[^`]*`")
)

func read(t *testing.T, path string) document {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	d := document{anchors: map[string]bool{}}
	fenced := false
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if heading := strings.TrimLeft(line, "#"); len(heading) < len(line) && strings.HasPrefix(heading, " ") {
			d.add(anchor(heading))
		}
		for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
			d.links = append(d.links, m[1])
		}
	}
	require.False(t, fenced, "%s: a code block is not closed", path)
	return d
}

// add notes a heading's anchor; the second of a name gets a number.
func (d document) add(name string) {
	unique := name
	for n := 1; d.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	d.anchors[unique] = true
}

// anchor is the name that a heading is reached by, as forges make it: lower
// case, blanks as hyphens, other punctuation left out.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

func TestAnchor(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]string{
		" jwx v2\n": "jwx-v2", " What to do when …\n": "what-to-do-when-", " go-fed/httpsig": "go-fedhttpsig",
		" Federation: who says what": "federation-who-says-what", " `Signature`, replay": "signature-replay",
	} {
		require.Equal(t, want, anchor(heading))
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	all := documents(t)
	texts := map[string]document{}
	for _, path := range all {
		texts[path] = read(t, path)
	}
	for _, path := range all {
		for _, target := range texts[path].links {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file, part, hasPart := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			_, err := os.Stat(filepath.Join(root, to))
			if err != nil || strings.HasPrefix(to, "..") {
				t.Errorf("%s: the link %s leads to no file", path, target)
				continue
			}
			if d, known := texts[to]; hasPart && (!known || !d.anchors[part]) {
				t.Errorf("%s: the link %s leads to no heading", path, target)
			}
		}
	}
}

// machine finds paths that exist on one machine only.
var machine = regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])(/(home|root|tmp|work|Users|mnt|private)/|file://|[A-Z]:\\)`)

func TestNoMachinePaths(t *testing.T) {
	t.Parallel()
	for _, path := range documents(t) {
		raw, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(raw)) {
			n++
			if found := machine.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is a path of one machine", path, n, strings.TrimSpace(found))
			}
		}
	}
	require.True(t, machine.MatchString("see /tmp/x"), "the pattern finds what it is for")
}

// TestSecurity: every attack in docs/ATTACKS.md names tests that exist.
func TestSecurity(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "node_modules" || d.Name() == "data" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			raw, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(raw, -1) {
				tests[string(m[1])] = true
			}
			return err
		}
		return nil
	}))
	raw, err := os.ReadFile(filepath.Join(root, "docs/ATTACKS.md"))
	require.NoError(t, err)
	rows, named := 0, regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack |") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, names, "no test: %s", line)
		for _, name := range names {
			require.True(t, tests[name[1]], "no test has the name %s", name[1])
		}
	}
	require.Greater(t, rows, 50)
}

// TestSizes: a document that grows beyond what a reader reads has two subjects.
func TestSizes(t *testing.T) {
	t.Parallel()
	for path, most := range map[string]int{
		"README.md": 7000, "docs/ARCHITECTURE.md": 20_000, "SECURITY.md": 25_000, "docs/ATTACKS.md": 25_000,
		"docs/OPERATIONS.md": 40_000, "docs/RETENTION.md": 10_000,
	} {
		raw, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw), most, path)
	}
}

// TestVerified: every place that says "verified" is in the list of docs/VERIFIED.md, and nothing else is.
func TestVerified(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	says := regexp.MustCompile("json:\"([^\",]*[vV]erified[^\",]*)|(?:tr\\(ctx, |say\\(|worded\\(\"[a-z]+\", )\"((?:un)?verified(?:| (?:by|for) [^\"]*))\"")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name == "node_modules" || name == "data" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") || filepath.Ext(name) != ".go" && filepath.Ext(name) != ".templ":
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range says.FindAllStringSubmatch(string(source), -1) {
			said[m[1]+m[2]] = true
		}
		return err
	}))
	list, err := os.ReadFile("VERIFIED.md")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \| `).FindAllStringSubmatch(string(list), -1) {
		for place := range strings.SplitSeq(row[1], ", ") {
			listed[strings.Trim(place, "`")] = true
		}
	}
	delete(listed, "says")
	delete(listed, "---")
	require.Equal(t, listed, said)
}
