package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type shop struct {
	Config  string `placeholder:"FILE" configures:"" env:"SHOP_CONFIG" help:"File with the settings."`
	Sell    sell   `cmd:"" help:"Sell things."`
	Store   store  `cmd:"" help:"The store."`
	Say     say    `cmd:"" help:"Say anything." passthrough:""`
	Hidden_ sell   `cmd:"" name:"old" hidden:"" help:"As sell."`
}

type settings struct {
	Open   bool          `env:"SHOP_OPEN" help:"Whether it is open."`
	Wait   time.Duration `default:"2m" help:"How long customers wait."`
	Most   uint32        `default:"7" help:"How many."`
	Price  float64       `help:"What it costs."`
	Hosts  []string      `sep:";" env:"SHOP_HOSTS" help:"Where."`
	Colour string        `enum:",red,blue" help:"A colour."`
	Inner  func()
}

func (s settings) Validate() error {
	if s.Most > 100 {
		return errors.New("most: at most 100")
	}
	return nil
}

type sell struct {
	settings `settings:"Settings" shown:"open,price"`
	DryRun   bool   `help:"Sell nothing."`
	Key      string `required:"" placeholder:"FILE" help:"The key."`
	What     string `arg:"" help:"What is sold."`
	ID       int64  `arg:"" optional:"" help:"Its number."`
}

func (sell) Help() string {
	return "First line.\nA second line that is long enough to be broken, since it has more than eighty characters."
}

type store struct {
	Look find  `cmd:"" default:"" help:"Find things."`
	Fill names `cmd:"" help:"Put things in."`
}

type find struct {
	Exact bool   `help:"Only the same."`
	Word  string `arg:"" optional:"" help:"What to find."`
}

type names struct {
	Names []string `arg:"" help:"What to put in."`
}

type say struct {
	Words []string `arg:"" optional:""`
}

func (*say) Complete(before []string) []string { return append([]string{"hello", "--loud"}, before...) }

func parseShop(line string, keys map[string]any) (shop, *Command, error) {
	var s shop
	at, err := New("shop", "A shop.", &s).Parse(strings.Fields(line), func() (map[string]any, error) {
		if s.Config == "none" {
			return nil, errors.New("no file")
		}
		return keys, nil
	})
	return s, at, err
}

func TestParse(t *testing.T) {
	t.Setenv("SHOP_HOSTS", "x;y")
	t.Setenv("SHOP_OPEN", "yes")
	keys := map[string]any{"wait": "3s", "most": int64(9), "price": 1.5, "open": false, "hosts": "z"}
	s, at, err := parseShop("sell --key k tea --dry-run -- -5", keys)
	require.NoError(t, err)
	require.Equal(t, "shop sell", at.Path())
	require.Equal(t, sell{settings{true, 3 * time.Second, 9, 1.5, []string{"x", "y"}, "", nil}, true, "k", "tea", -5}, s.Sell, "flag, environment, file, default")
	require.Same(t, at.Target(), at.Parent.Command("sell").Target())

	s, _, err = parseShop("--config=f sell tea --key=-k --open=no --wait 1h --hosts a;b --hosts c --price 2 --colour red", keys)
	require.NoError(t, err)
	require.Equal(t, "f", s.Config)
	require.Equal(t, sell{settings{false, time.Hour, 9, 2, []string{"a", "b", "c"}, "red", nil}, false, "-k", "tea", 0}, s.Sell)

	s, _, err = parseShop("sell tea --key k", map[string]any{"hosts": []any{"a"}, "wait": "1s", "open": true})
	require.NoError(t, err)
	require.EqualValues(t, 7, s.Sell.Most, "the default")

	s, _, err = parseShop("sell tea --key k --hosts=", nil)
	require.NoError(t, err)
	require.Empty(t, s.Sell.Hosts, "no host, and not the environment's")
	t.Setenv("SHOP_HOSTS", "")
	s, _, err = parseShop("sell tea --key k", map[string]any{"hosts": "a"})
	require.NoError(t, err)
	require.Empty(t, s.Sell.Hosts, "the environment says none")

	s, at, err = parseShop("store --exact -- old", nil)
	require.NoError(t, err)
	require.Equal(t, "shop store look", at.Path())
	require.Equal(t, find{true, "old"}, s.Store.Look)
	s, _, err = parseShop("store fill a b,c -", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b,c", "-"}, s.Store.Fill.Names)
	s, _, err = parseShop("say --help -- x", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"--help", "--", "x"}, s.Say.Words)
	for _, line := range []string{"", "-h", "sell --help", "store -h", "sell --key k a b --help"} {
		_, _, err = parseShop(line, nil)
		require.ErrorIs(t, err, ErrHelp, line)
	}
}

func TestParse_Faults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		keys map[string]any
		says string
	}{
		{"sel", nil, `there is no command "sel" (did you mean "sell"?)`},
		{"ol", nil, `there is no command "ol"`},
		{"--config x", nil, "name one of the commands: sell, store, say"},
		{"-- sell", nil, "name one of the commands: sell, store, say"},
		{"sell --kye k tea", nil, `there is no flag --kye (did you mean "--key"?)`},
		{"sell -key k tea", nil, `there is no flag -key (did you mean "--key"?); an argument that begins with - is written after --`},
		{"sell --kye=secret", nil, `there is no flag --kye (did you mean "--key"?)`},
		{"store --exct", nil, `there is no flag --exct (did you mean "--exact"?)`},
		{"sell --key", nil, "--key=FILE needs a value"},
		{"sell --key --dry-run", nil, "--key=FILE needs a value"},
		{"sell", nil, "missing: --key=FILE <what>"},
		{"sell --key k tea 1 2", nil, `unexpected argument "2"`},
		{"sell --key k tea x", nil, `[<id>]: "x" is not a whole number within its range`},
		{"sell --key k tea null", nil, `[<id>]: "null" is not a whole number within its range`},
		{"sell --key k tea --most 4294967296", nil, `--most: "4294967296" is not a whole number within its range`},
		{"sell --key k tea --most 101", map[string]any{"mots": 1},
			"configuration file: there is no setting \"mots\" (did you mean \"most\"?); stoa serve --help lists them\nmost: at most 100"},
		{"sell --key k tea --price NaN", nil, `--price: "NaN" is not a number`},
		{"sell --key k tea --wait 5", nil, `--wait: "5" is not a duration such as 90s or 2h30m`},
		{"sell --key k tea --open=maybe", nil, `--open: "maybe" is neither true nor false`},
		{"sell --key k tea --colour green", nil, `--colour: "green" is none of red, blue`},
		{"sell --key k tea", map[string]any{"colour": int64(1), "most": []any{int64(1)}, "open": map[string]any{}, "price": "much"},
			"configuration file: colour: \"1\" is none of red, blue\nconfiguration file: price: \"much\" is not a number\n" +
				"configuration file: most: [1] is not what a setting can be\nconfiguration file: open: map[] is not what a setting can be"},
		{"--config none sell --key k tea", nil, "no file"},
		{"--config none store", nil, ""},
	} {
		_, _, err := parseShop(tt.line, tt.keys)
		if tt.says == "" {
			require.NoError(t, err, tt.line)
		} else {
			require.EqualError(t, err, tt.says, tt.line)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": `Usage: shop <command> [flags]

A shop.

Flags:
  --config=FILE    File with the settings. [$SHOP_CONFIG]
  --help           Print what a command does, and its flags; -h does too.

Commands:
  sell     Sell things.
  store    The store.
  say      Say anything.

Run shop <command> --help for more.
`,
		"sell": `Usage: shop sell <what> [<id>] --key=FILE [flags]

Sell things.

First line.
A second line that is long enough to be broken, since it has more than eighty
characters.

Arguments:
  <what>    What is sold.
  [<id>]    Its number.

Settings:
  --open             Whether it is open. [$SHOP_OPEN]
  --price=FLOAT64    What it costs.

Flags:
  --dry-run        Sell nothing.
  --key=FILE       The key.
  --config=FILE    File with the settings. [$SHOP_CONFIG]
  --help           Print what a command does, and its flags; -h does too.
`,
		"store look": `Usage: shop store look [<word>] [flags]

Find things.

Arguments:
  [<word>]    What to find.

Flags:
  --exact    Only the same.
  --help     Print what a command does, and its flags; -h does too.
`,
	} {
		_, at, err := parseShop(path+" --help", nil)
		require.ErrorIs(t, err, ErrHelp)
		var b strings.Builder
		require.NoError(t, at.WriteHelp(&b))
		require.Equal(t, want, b.String())
	}
	require.Equal(t, "--wait=DURATION", (New("shop", "", &shop{})).Command("sell").Flag("wait").usage())
}

func TestCommand_Complete(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]string{
		"":                {"sell", "store", "say"},
		"s":               {"sell", "store", "say"},
		"nothing ":        {"sell", "store", "say"},
		"store ":          {"look", "fill"},
		"sell --k":        {"--key"},
		"sell --":         {"--open", "--price", "--dry-run", "--key", "--config", "--help"},
		"sell --colour ":  {"red", "blue"},
		"sell --colour b": {"blue"},
		"sell --key ":     {},
		"say a ":          {"hello", "--loud", "a"},
		"say --":          {"--loud"},
		"store look --":   {"--exact", "--help"},
	} {
		require.ElementsMatch(t, want, New("shop", "", &shop{}).Complete(strings.Split(words, " ")), words)
	}
	require.NotEmpty(t, New("shop", "", &shop{}).Complete(nil))
}
