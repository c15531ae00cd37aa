package node_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport maps a package to the packages of this module that it may import. A key
// also applies to the folders below it, and so does each value.
var mayImport = map[string][]string{
	"stoa/schemas":        {},
	"stoa/docs":           {},
	"stoa/identity/cache": {},
	"stoa/protocol/netx":  {},
	"stoa/protocol":       {"stoa/protocol"},
	"stoa/storage":        {"stoa/protocol", "stoa/storage"},
	"stoa/storage/commit": {"stoa/protocol"},
	"stoa/identity":       {"stoa/protocol", "stoa/identity"},
	"stoa/wellknown":      {"stoa/protocol", "stoa/identity", "stoa/schemas"},
	"stoa/federation":     {"stoa/protocol", "stoa/identity", "stoa/storage"},

	"stoa/node/out":   {"stoa/protocol", "stoa/identity", "stoa/node/out"},
	"stoa/node/hall":  {"stoa/protocol", "stoa/storage", "stoa/identity"},
	"stoa/node/money": {"stoa/protocol", "stoa/storage", "stoa/node/out"},
	"stoa/node/room":  {"stoa/protocol", "stoa/storage", "stoa/identity", "stoa/node/hall", "stoa/node/out", "stoa/node/money"},
	"stoa/node/work":  {"stoa/protocol", "stoa/storage", "stoa/identity", "stoa/node/out"},
	"stoa/node/door":  {"stoa/protocol", "stoa/identity", "stoa/node/hall"},
	"stoa/node":       {"stoa/"},

	"stoa/node/nodetest": {"stoa/"}, // imported by tests alone

	// Rooms that need another.
	"stoa/node/room/operate": {"stoa/protocol", "stoa/storage", "stoa/identity", "stoa/node/hall", "stoa/node/room/moderation"},
	"stoa/node/room/credential": {
		"stoa/protocol", "stoa/storage", "stoa/identity", "stoa/node/hall", "stoa/node/out", "stoa/wellknown", "stoa/node/room/directory",
	},

	"stoa/node/door/ucpapi":       {"stoa/protocol", "stoa/identity", "stoa/node/hall", "stoa/node/door/mcpapi"},
	"stoa/node/door/web":          {"stoa/protocol", "stoa/identity", "stoa/node/hall", "stoa/node/door/web"},
	"stoa/node/door/web/words":    {"stoa/identity/cache", "stoa/protocol"},
	"stoa/node/door/web/markdown": {},

	"stoa/cmd/fill":         {"stoa/storage"},
	"stoa/cmd/stoa":         {"stoa/node", "stoa/protocol", "stoa/identity", "stoa/storage", "stoa/cmd/stoa"},
	"stoa/cmd/stoa/client":  {"stoa/protocol", "stoa/identity", "stoa/node/out/outbound"},
	"stoa/cmd/stoa/command": {},
}

// onlyIn maps an external module to the packages that may import it, so that each
// module is replaceable and its faults are in one package; and a package of ours that
// only its parent may import.
var onlyIn = map[string][]string{
	"stoa/storage/commit":                   {"stoa/storage"},
	"github.com/maypok86/otter":             {"stoa/identity/cache", "stoa/identity/erc8004"},
	"github.com/SherClockHolmes/webpush-go": {"stoa/node/out/push"},
	"filippo.io/age":                        {"stoa/node/room/archive", "stoa/node/work/backup"},
	"github.com/aws/aws-sdk-go-v2":          {"stoa/node/out/s3"},
	"github.com/uptrace/bun":                {"stoa/storage"},
	"github.com/jackc/pgx":                  {"stoa/storage"},
	"modernc.org/sqlite":                    {"stoa/storage"},
	"golang.org/x/image":                    {"stoa/node/room/picture"},
	"golang.org/x/mod":                      {"stoa/federation", "stoa/identity/tree"},
	"github.com/pressly/goose":              {"stoa/storage"},
	"github.com/uptrace/bunrouter":          {"stoa/node"},
	"github.com/ethereum/go-ethereum":       {"stoa/identity/erc8004", "stoa/identity/eip4361"},
	"github.com/go-webauthn/webauthn":       {"stoa/identity/passkey"},
	"github.com/lestrrat-go/jwx":            {"stoa/identity/key"},
	"github.com/go-fed/httpsig":             {"stoa/identity/httpsig/cavage"},
	"github.com/go-json-experiment":         {"stoa/identity/strictjson"},
	"github.com/danielgtaylor/huma":         {"stoa/node/hall", "stoa/node/door/httpapi"},
	"github.com/VictoriaMetrics":            {"stoa/node"},
	"stoa/node/nodetest":                    {},                                                  // tests alone
	"stoa/protocol/must":                    {"stoa/node/nodetest", "stoa/node/out/pay/paytest"}, // tests alone
	"github.com/chromedp":                   {"stoa/node/nodetest"},
	"github.com/pelletier/go-toml":          {"stoa/cmd/stoa"},
	"github.com/klauspost/compress/gzhttp":  {"stoa/node"},
	"github.com/a-h/templ":                  {"stoa/node/door/web"},
	"github.com/wneessen/go-mail":           {"stoa/node/out/mail"},
	"github.com/emersion":                   {"stoa/node/out/mail"},
	"rsc.io/qr":                             {"stoa/node/out/pay/qr"},
	"golang.org/x/crypto/acme":              {"stoa/node/work/certificate"},
	"github.com/makiuchi-d/gozxing":         {}, // tests alone
	"github.com/teambition/rrule-go":        {}, // tests alone
	"github.com/yuin/goldmark":              {}, // tests alone
	"github.com/stretchr/testify": {"stoa/storage/storagetest", "stoa/node/out/pay/paytest", "stoa/node/out/calendar/calendartest",
		"stoa/node/out/mail/mailtest", "stoa/node/nodetest"},
	"testing": {"stoa/storage/storagetest", "stoa/node/out/pay/paytest", "stoa/node/out/calendar/calendartest", "stoa/node/out/push/pushtest",
		"stoa/node/out/mail/mailtest", "stoa/node/nodetest", "stoa/protocol/must"},
	"github.com/ethereum/go-ethereum/node":  {},
	"github.com/ethereum/go-ethereum/ethdb": {},
}

// TestNotice checks that NOTICE names every module that go.mod requires.
func TestNotice(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	notice, err := os.ReadFile("../NOTICE")
	require.NoError(t, err)
	text := strings.ToLower(string(notice))
	for line := range strings.Lines(string(mod)) {
		path, _, required := strings.Cut(strings.TrimSpace(line), " v")
		if !required || strings.Contains(line, "// indirect") || strings.HasPrefix(path, "golang.org/x/") {
			continue
		}
		parts := strings.Split(path, "/") // host, owner and repository, or host and module
		named := strings.Contains(text, parts[1]) || len(parts) > 2 && strings.Contains(text, parts[2])
		require.True(t, named, "%s is not in NOTICE", path)
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImports(t *testing.T) {
	t.Parallel()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "stoa/...")
	command.Dir = ".."
	out, err := command.Output()
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for dec.More() {
		var p goPackage
		require.NoError(t, dec.Decode(&p))
		seen++
		allowed, known := rule(p.ImportPath)
		require.True(t, known, "%s has no row in mayImport (above): which packages may it import? docs/ARCHITECTURE.md has the same table", p.ImportPath)
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "stoa/") && !under(i, allowed) {
				t.Errorf("%s imports %s: it may import only %v (mayImport; docs/ARCHITECTURE.md)", p.ImportPath, i, allowed)
			}
			if module, importers := restriction(i); module != "" && !under(p.ImportPath, importers) {
				t.Errorf("%s imports %s: only %v may", p.ImportPath, i, importers)
			}
			external := strings.Contains(i, ".") && i != "golang.org/x/net/publicsuffix"
			if external && strings.HasPrefix(p.ImportPath, "stoa/protocol") {
				t.Errorf("%s imports %s: protocol imports only the standard library and the public suffix list", p.ImportPath, i)
			}
		}
	}
	require.Greater(t, seen, 20)
}

// rule returns the row of the package: the one with the longest matching key.
func rule(path string) ([]string, bool) {
	best := ""
	for row := range mayImport {
		if (path == row || strings.HasPrefix(path, row+"/")) && len(row) > len(best) {
			best = row
		}
	}
	return mayImport[best], best != ""
}

// restriction returns the restricted module of an imported package, and the packages
// that may import it; "" when the package is not restricted.
func restriction(imported string) (string, []string) {
	best := ""
	for module := range onlyIn {
		if (imported == module || strings.HasPrefix(imported, module+"/")) && len(module) > len(best) {
			best = module
		}
	}
	return best, onlyIn[best]
}

// under reports whether a path is one of the prefixes or below it.
func under(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")
	})
}
