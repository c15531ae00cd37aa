package command

import (
	"errors"
	"slices"
	"strings"
)

// Complete returns what the last word, which may be empty, can become. A passthrough command says by its method Complete what may follow its words.
func (c *Command) Complete(words []string) (next []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	at, args, err := c.find(words[:len(words)-1])
	missing, waits := errors.AsType[missingValue](err)
	passing, passes := at.Target().(interface{ Complete([]string) []string })
	switch {
	case waits:
		next = missing.of.Enum
	case passes:
		next = passing.Complete(args)
	case strings.HasPrefix(last, "-"):
		for _, v := range at.AllFlags() {
			if at.offers(v) {
				next = append(next, "--"+v.Name)
			}
		}
	case at.Commands != nil:
		next = at.names()
	case len(args) < len(at.Args):
		next = at.Args[len(args)].Enum
	}
	return slices.DeleteFunc(slices.Clone(next), func(word string) bool { return word == "" || !strings.HasPrefix(word, last) })
}
