package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/protocol"
	"stoa/protocol/must"
)

var update = flag.Bool("update", false, "sort the catalogues, and remove what no source uses")

// keyed are the functions that get a key, and which argument it is.
var keyed = map[string]int{"tr": 1, "say": 0, "english": 0, "link": 1, "newTab": 1, "para": 0, "hint": 0, "codedRegion": 1, "quiet": 0, "spanned": 0,
	"empty": 0,
	"title": 0, "heading": 1, "subheading": 0, "subtitle": 0, "line": 1, "box": 1, "tickBox": 1, "several": 1, "choose": 1, "group": 0, "fold": 0,
	"remark": 0, "summary": 0, "legend": 0, "column": 0, "term": 0, "submits": 0, "sends": 0, "sendRow": 0, "sayIn": 1, "linkAs": 2, "nextPage": 1,
	"row": 0, "worded": 1, "ahead": 1, "accountHead": 1, "crumbs": 0, "bold": 0, "submitsQuietly": 0, "titled": 1, "signInLink": 1, "folded": 1,
	"fact": 0, "plainFact": 0, "done": 0, "failed": 0, "onward": 1, "plainField": 0}

// keysOf returns the keys in the Go code of this package, with where they are.
func keysOf(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	files := must.Get(filepath.Glob("*.go"))(t)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(set, name, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			if at, ok := keyed[fun.Name]; ok && at < len(call.Args) {
				if key, ok := literal(call.Args[at]); ok {
					keys[key] = set.Position(call.Pos()).String()
				} else if fun.Name == "english" || fun.Name == "say" {
					t.Errorf("%s: the key is no literal", set.Position(call.Pos()))
				}
			}
			return true
		})
	}
	for _, js := range [][]byte{proofJS, payJS, signInJS, uploadJS, nearJS, pushJS, walletJS} {
		for _, found := range scriptText.FindAllSubmatch(js, -1) {
			keys[string(found[1])] = "a script"
		}
	}
	for _, key := range enumerated() {
		keys[key] = "enumerated"
	}
	for _, c := range labelledFields(protocol.PutOwnProfile.Operation) {
		keys[c.label] = "a tag"
	}
	return keys
}

// literal returns the value of a string literal, or of several with + between them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// TestTexts compares the texts in the code with the catalogues: none is missing, none is left over, and
// each shows the same arguments.
func TestTexts(t *testing.T) {
	t.Parallel()
	keys := keysOf(t)
	for _, l := range words.All().Languages {
		entries := catalogue(t, l.Code, func(key string) bool { return keys[key] != "" })
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if _, ok := entries[key]; !ok && l.Code != "en" {
				t.Errorf("%s.json lacks %q of %s", l.Code, key, keys[key])
			}
		}
	}
}

// catalogue reads a catalogue and checks it; used says which of its keys have a source.
func catalogue(t *testing.T, name string, used func(key string) bool) map[string]words.Entry {
	t.Helper()
	path := "words/" + name + ".json"
	raw := must.Get(os.ReadFile(path))(t)
	packed := must.Get(gzip.NewReader(bytes.NewReader(must.Get(os.ReadFile(path + ".gz"))(t))))(t)
	if !*update {
		require.True(t, bytes.Equal(raw, must.Get(io.ReadAll(packed))(t)), "%s was changed: make generate packs it", path)
	}
	entries := map[string]words.Entry{}
	require.NoError(t, json.Unmarshal(raw, &entries), path)
	for key, e := range entries {
		if !used(key) && *update {
			delete(entries, key)
		} else if !used(key) {
			t.Errorf("%s: no source uses %q (-update removes it)", path, key)
		}
		for category, text := range e.Cases {
			if category == "other" {
				require.Equal(t, words.Verbs(key), words.Verbs(text), "%s: %q and %q show other arguments", path, key, text)
			}
		}
		if e.Cases == nil {
			require.NotEmpty(t, e.Text, "%s: %q", path, key)
			require.Equal(t, words.Verbs(key), words.Verbs(e.Text), "%s: %q and %q show other arguments", path, key, e.Text)
		}
	}
	if *update {
		var b strings.Builder
		write := json.NewEncoder(&b)
		write.SetEscapeHTML(false)
		write.SetIndent("", "  ")
		require.NoError(t, write.Encode(entries))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	} else {
		require.Equal(t, len(entries), members(t, raw), "%s has a key twice (-update keeps the last)", path)
	}
	return entries
}

// members counts the members of a JSON object, those with an equal name too.
func members(t *testing.T, raw []byte) (n int) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	must.Get(d.Token())(t)
	for ; d.More(); n++ {
		must.Get(d.Token())(t)
		var e words.Entry
		require.NoError(t, d.Decode(&e))
	}
	return n
}

// wireWords returns the words of the wire that the pages show by word, and the names of the states of India.
func wireWords() (all []string) {
	for _, s := range states {
		all = append(all, s)
	}
	add := func(list ...string) {
		for _, w := range list {
			all = append(all, wordKey(w))
		}
	}
	for _, k := range protocol.PostKinds {
		add(string(k))
	}
	for _, k := range protocol.FeedTypes {
		add(string(k))
	}
	add(protocol.ContactKinds...)
	add(string(protocol.Person), string(protocol.Business))
	add(string(protocol.Backorder), string(protocol.Preorder), string(protocol.OutOfStock), string(protocol.Discontinued))
	add("post", "agent", "key", "network", "host", "handle", "actor") // protocol.ModerationEntry
	add("lapsed", "live", "outbid", "ended", "removed", "unanswered", "refund_due", "refunding", "refunded", "refund_failed")
	return append(all, protocol.NoIdentity)
}

// TestLetterTexts: each language but that of the rooms has the texts of letters and notices, and no others.
func TestLetterTexts(t *testing.T) {
	t.Parallel()
	keys, set := map[string]string{}, token.NewFileSet()
	for _, name := range must.Get(filepath.Glob("../../room/*/*.go"))(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(set, name, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fun, ok := call.Fun.(*ast.SelectorExpr); ok && (fun.Sel.Name == "Text" || fun.Sel.Name == "Key") && len(call.Args) > 0 {
				if key, ok := literal(call.Args[0]); ok {
					keys[key] = set.Position(call.Pos()).String()
				}
			}
			return true
		})
	}
	for _, l := range words.All().Languages[1:] {
		entries := catalogue(t, words.LettersOf(l.Code), func(key string) bool { return keys[key] != "" })
		for key, at := range keys {
			if _, ok := entries[key]; !ok {
				t.Errorf("%s.json lacks %q of %s", words.LettersOf(l.Code), key, at)
			}
		}
	}
}

// TestRoomTexts: each text of a catalogue of the rooms is in the code of a room, so that it is not left behind when that changes,
// and every language but that of the rooms has it.
func TestRoomTexts(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, root := range []string{"../..", "../../../protocol", "../../../identity", "../../../storage"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			code.Write(raw)
			return err
		}))
	}
	joined := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(code.String(), "")
	rooms := map[string]map[string]words.Entry{}
	for _, l := range words.All().Languages[1:] {
		rooms[l.Code] = catalogue(t, words.RoomsOf(l.Code), func(key string) bool {
			return strings.Contains(joined, strconv.Quote(key)) || slices.Contains(composed, key)
		})
		require.ElementsMatch(t, slices.Collect(maps.Keys(rooms["hi"])), slices.Collect(maps.Keys(rooms[l.Code])), l.Code)
	}
}

// composed are the texts of rooms that are no literal there: those of the schema's check, and those that are put together.
var composed = []string{
	"at least %d characters", "at least 1 character", "at most 1 character", "at least %d items", "at least 1 item", "at most %d items", "at most 1 item",
	"must be one of %s", "must be <= %s", "must be >= %s", "not a value of the option %s", `there is no column "%s"; the columns are %s`,
	"cannot be read as JSON: %s", "this account is uploading another catalog; wait until that upload is done, or cancel it",
	"other catalogs are being processed; try again in a minute",
	"live, paid less than a rupee too much, which stays",
	"Verify this agent's messages against the key registered on chain %s for agent %s of registry %s.",
}

// enumerated returns the texts that are made from what this package does not write: words of the
// wire, titles of errors, and what package words asks for.
func enumerated() []string {
	return append(append(refusalTexts(), checkTexts()...),
		append(wireWords(), "Jan##month", "Feb##month", "Mar##month", "Apr##month", "May##month", "Jun##month", "Jul##month", "Aug##month", "Sep##month",
			"Oct##month", "Nov##month", "Dec##month",
			"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
			"Mon##day", "Tue##day", "Wed##day", "Thu##day", "Fri##day", "Sat##day", "Sun##day",
			"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")...,
	)
}

// checkTexts are what Health shows of an examination.
func checkTexts() (keys []string) {
	for _, k := range protocol.CheckKinds() {
		keys = append(keys, k.Title)
	}
	for _, a := range protocol.Ailments() {
		keys = append(keys, a.What, a.Mend)
	}
	return keys
}
