package liveness

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func allowed(t *testing.T, text, path string) bool {
	t.Helper()
	u, err := url.Parse("https://agent.example" + path)
	require.NoError(t, err)
	return parseRobots([]byte(text), product).allows(u)
}

func TestRobots_Groups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		allowed    bool // of /a
	}{
		{"empty", "", true},
		{"no rules", "User-agent: *\n", true},
		{"empty disallow", "User-agent: *\nDisallow:\n", true},
		{"everybody", "User-agent: *\nDisallow: /\n", false},
		{"us", "User-agent: stoa\nDisallow: /\n", false},
		{"us in capitals, with version", "USER-AGENT : Stoa/1.0\nDISALLOW : /\n", false},
		{"another", "User-agent: other\nDisallow: /\n", true},
		{"a longer name", "User-agent: stoabot\nDisallow: /\n", true},
		{"ours before everybody's", "User-agent: *\nDisallow: /\n\nUser-agent: stoa\nAllow: /\n", true},
		{"ours without rules", "User-agent: *\nDisallow: /\n\nUser-agent: stoa\n", true},
		{"one group of two", "User-agent: other\nUser-agent: stoa\nDisallow: /\n", false},
		{"two groups of ours", "User-agent: stoa\nDisallow: /b\n\nUser-agent: x\nDisallow: /c\n\nUser-agent: stoa\nDisallow: /a\n", false},
		{"rules before any group", "Disallow: /\nUser-agent: *\nAllow: /\n", true},
		{"other lines between", "User-agent: stoa\nCrawl-delay: 5\nSitemap: https://x.example/s.xml\nDisallow: /\n", false},
		{"comments and blanks", "# all\n\n  User-agent:*  # everybody\r\n\tDisallow :  /a  # this\r\n", false},
		{"mark and old line ends", "\xef\xbb\xbfUser-agent: *\rDisallow: /a\r", false},
		{"a page instead of a file", "<!DOCTYPE html><html><body style=\"color: red\">Disallow: /</body></html>", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.allowed, allowed(t, c.text, "/a"))
		})
	}
}

// RFC 9309 §2.2.2, §2.2.3, §5.1 and §5.2, and the examples of the draft's
// reference matcher.
func TestRobots_Paths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, path string
		allowed     bool
	}{
		{"Disallow: /fish", "/fish", false},
		{"Disallow: /fish", "/fish.html", false},
		{"Disallow: /fish", "/fishheads/yummy.html", false},
		{"Disallow: /fish", "/Fish.asp", true},
		{"Disallow: /fish", "/catfish", true},
		{"Disallow: /fish", "/?id=fish", true},
		{"Disallow: /fish/", "/fish", true},
		{"Disallow: /fish/", "/fish/?id=anything", false},
		{"Disallow: /*.php", "/filename.php", false},
		{"Disallow: /*.php", "/folder/filename.php?parameters", false},
		{"Disallow: /*.php", "/", true},
		{"Disallow: /*.php", "/windows.PHP", true},
		{"Disallow: /*.php$", "/folder/filename.php", false},
		{"Disallow: /*.php$", "/filename.php?parameters", true},
		{"Disallow: /*.php$", "/filename.php5", true},
		{"Disallow: /fish*.php", "/fishheads/catfish.php?parameters", false},
		{"Disallow: /fish*.php", "/Fish.PHP", true},
		{"Disallow: /a*b*c$", "/axbxcxc", false},
		{"Disallow: /a*b*c$", "/axcxb", true},
		{"Disallow: /ab*ba$", "/aba", true},
		{"Disallow: /a$", "/a", false},
		{"Disallow: /a$", "/ab", true},
		{"Disallow: /*$", "/anything", false},

		{"Allow: /p\nDisallow: /", "/page", true},
		{"Allow: /folder\nDisallow: /folder", "/folder/page", true},
		{"Disallow: /folder\nAllow: /folder", "/folder/page", true},
		{"Allow: /page\nDisallow: /*.htm", "/page.htm", false},
		{"Allow: /$\nDisallow: /", "/", true},
		{"Allow: /$\nDisallow: /", "/page.htm", false},
		{"Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/disallowed.gif", false},
		{"Disallow: /", "/robots.txt", true},

		{"Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", false},
		{"Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", false},
		{"Disallow: /foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", false},
		{"Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", false},
		{"Disallow: /%7Ejoe", "/~joe/", false},
		{"Disallow: /a%2Fb", "/a/b", true},
		{"Disallow: /%zz", "/anything", true},
		{"Disallow: relative", "/relative", true},
	} {
		require.Equal(t, c.allowed, allowed(t, "User-agent: *\n"+c.rules+"\n", c.path), "%q %s", c.rules, c.path)
	}
}

func TestRobots_Bounded(t *testing.T) {
	t.Parallel()
	many := "User-agent: *\n" + strings.Repeat("Disallow: /x\n", 10*maxRules)
	require.Len(t, parseRobots([]byte(many), product), maxRules)
	long := "User-agent: *\nDisallow: /" + strings.Repeat("a", maxPath) + "\n"
	require.Empty(t, parseRobots([]byte(long), product))
	stars := "User-agent: *\nDisallow: /" + strings.Repeat("*a", maxPath/2-1) + "$\n"
	require.True(t, allowed(t, stars, "/"+strings.Repeat("a", 400)), "in no time")
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /*.php$\nAllow: /%7e", "/a.php?x=1")
	f.Add("user-agent:stoa\ndisallow:/%", "/%41")
	f.Fuzz(func(t *testing.T, text, path string) {
		u := &url.URL{Scheme: "https", Host: "agent.example", Path: "/" + path}
		r := parseRobots([]byte(text), product)
		require.LessOrEqual(t, len(r), maxRules)
		r.allows(u)
		require.Equal(t, normalize(u.EscapedPath()), normalize(normalize(u.EscapedPath())))
	})
}
