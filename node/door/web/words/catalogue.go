package words

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// The catalogues are packed, which saves 270 kB of the binary; make generate packs them.
//
//go:embed *.json.gz
var files embed.FS

// languages is the table of languages: a new one needs a row and a catalogue.
var languages = []func() *Language{English, Hindi}

// English is the language of the keys. Its numbers are those of India.
var English = sync.OnceValue(func() *Language { return load("en", "English", language.MustParse("en-IN")) })

// Hindi has the digits that are CLDR's default, which are those of English.
var Hindi = sync.OnceValue(func() *Language { return load("hi", "हिन्दी", language.Hindi) })

// All returns every language.
func All() *Set {
	var all []*Language
	for _, l := range languages {
		all = append(all, l())
	}
	return NewSet(all...)
}

// Pseudo returns a language for tests, which shows every text in English between ⟦ and ⟧: what is
// outside is not translated.
func Pseudo() *Language {
	l := *English()
	l.wrap = func(text string) string { return "⟦" + text + "⟧" }
	return &l
}

// An Entry is what a catalogue has for a key: a text, or one for each plural category of the first
// number among the arguments.
type Entry struct {
	Text  string
	Cases map[string]string // zero, one, two, few, many, other; nil for a text
}

// UnmarshalJSON reads a string, or an object of plural categories.
func (e *Entry) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &e.Text)
	}
	if err := json.Unmarshal(raw, &e.Cases); err != nil {
		return err
	}
	if e.Cases["other"] == "" {
		return fmt.Errorf("plural cases without other: %s", raw)
	}
	return nil
}

// MarshalJSON is the reverse.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.Cases == nil {
		return json.Marshal(e.Text)
	}
	return json.Marshal(e.Cases)
}

// RoomsOf returns the name of the catalogue of a language that has the refusals and reasons of the rooms.
func RoomsOf(code string) string { return "rooms." + code }

// LettersOf returns the name of the catalogue of a language that has the texts of letters and notices.
func LettersOf(code string) string { return "letters." + code }

// catalogue reads a catalogue; English has none of what the rooms write.
func catalogue(name string) (map[string]Entry, error) {
	packed, err := files.Open(name + ".json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	return entries, json.NewDecoder(r).Decode(&entries)
}

// Unpack returns what make generate has compressed.
func Unpack(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is a part of the program
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return raw
}

// load makes a language from its catalogue, which the tests have read.
func load(code, name string, tag language.Tag) *Language {
	entries, err := catalogue(code)
	rooms, roomsErr := catalogue(RoomsOf(code))
	letters, lettersErr := catalogue(LettersOf(code))
	if err = errors.Join(err, roomsErr, lettersErr); err != nil {
		panic(fmt.Sprintf("%s.json: %v", code, err))
	}
	maps.Copy(entries, rooms)
	maps.Copy(entries, letters)
	b := catalog.NewBuilder(catalog.Fallback(tag))
	texts := map[string]string{}
	for key, e := range entries {
		if e.Cases == nil {
			texts[key] = e.Text
			err = b.SetString(tag, key, e.Text)
		} else {
			var cases []any
			for _, category := range []string{"zero", "one", "two", "few", "many", "other"} {
				if text, ok := e.Cases[category]; ok {
					cases = append(cases, category, text)
				}
			}
			err = b.Set(tag, key, plural.Selectf(number(key), "%d", cases...))
		}
		if err != nil {
			panic(fmt.Sprintf("%s.json: %q: %v", code, key, err))
		}
	}
	return &Language{Code: code, Name: name, Tag: tag, texts: texts, printer: message.NewPrinter(tag, message.Catalog(b)),
		ofRooms: sync.OnceValue(func() []pattern { return patternsOf(rooms) })}
}

// verb matches a verb of a text; its groups are the index of the argument, and the verb.
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?([a-zA-Z])`)

// number returns which argument is the first number of a text, from 1.
func number(key string) int {
	for i, m := range verb.FindAllStringSubmatch(key, -1) {
		if m[2] == "d" {
			return i + 1
		}
	}
	return 1
}

// Verbs returns the arguments that a text shows, sorted: "1s", "2d".
func Verbs(text string) map[string]bool {
	shown := map[string]bool{}
	for i, m := range verb.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
		at := m[1]
		if at == "" {
			at = fmt.Sprint(i + 1)
		}
		shown[at+m[2]] = true
	}
	return shown
}
