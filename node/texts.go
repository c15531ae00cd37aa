package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"stoa/node/door/web"
	"stoa/node/door/web/words"
	"stoa/node/hall"
)

// maxText is how long a text of the operator may be, in bytes.
const maxText = 64 << 10

// readTexts reads the operator's texts about the node: contact.md, terms.md and privacy.md in a directory, and
// contact.hi.md and so on for readers of another language. Each is optional; a file .md of another name is refused, so that a
// misspelled one is noticed.
func readTexts(dir string) (web.Texts, error) {
	if dir == "" {
		return nil, nil
	}
	names := map[string]bool{}
	for _, page := range web.TextPages {
		names[page+".md"] = true
		for _, l := range words.All().Languages {
			names[page+"."+l.Code+".md"] = true
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	texts := web.Texts{}
	for _, f := range files {
		if f.IsDir() || filepath.Ext(f.Name()) != ".md" {
			continue
		}
		if !names[f.Name()] {
			return nil, fmt.Errorf("texts: %s is none of %s", filepath.Join(dir, f.Name()), strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
		raw, err := readText(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("texts: %w", err)
		}
		page, language, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".md"), ".")
		texts.Set(page, language, raw)
	}
	return texts, nil
}

// textPages are the pages on which the operator says something.
func (n *Node) textPages() []string {
	return web.Config{Texts: n.texts, Contact: n.Config.Contact, GrievanceOfficer: n.Config.GrievanceOfficer}.Written()
}

// lettersIn returns the texts of letters by the code of a language.
func lettersIn() func(language string) hall.Words {
	all := words.All()
	return func(language string) hall.Words {
		if l := all.Find(language); l != nil {
			return l
		}
		return words.English()
	}
}

func readText(path string) (string, error) {
	raw, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxText:
		return "", fmt.Errorf("%s has %d bytes, at most %d", path, len(raw), maxText)
	case !utf8.Valid(raw):
		return "", fmt.Errorf("%s is not UTF-8", path)
	}
	return string(raw), nil
}
