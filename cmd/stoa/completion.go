package main

import (
	"fmt"
	"slices"
	"strings"

	"stoa/protocol"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return "For bash: source <(stoa completion bash). For zsh: source <(stoa completion zsh), after compinit. " +
		"For fish: stoa completion fish | source. Put the line into the shell's start file."
}

// completions are the scripts. Each passes the words so far to stoa __complete, which prints the
// possible next words, one per line; without any, file names are completed.
var completions = map[string]string{
	"bash": `_stoa() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o nosort -F _stoa stoa
`,
	"zsh": `#compdef stoa
_stoa() {
	local -a next
	next=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${next[*]}" ]]; then compadd -a next; else _files; fi
}
if [[ ${funcstack[1]} == _stoa ]]; then _stoa; else compdef _stoa stoa; fi
`,
	"fish": `function __stoa
	set -l words (commandline -opc)
	$words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c stoa -n 'test -n "$(__stoa)"' -f -a '(__stoa)'
`,
}

func (c *completionCmd) Run(w *world) error {
	_, err := fmt.Fprint(w.stdout, completions[c.Shell])
	return err
}

// completeCmd prints the completions of the last word of a command line.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

func (c *completeCmd) Run(w *world) error {
	for _, word := range w.command.Parent.Complete(c.Words) {
		fmt.Fprintln(w.stdout, word)
	}
	return nil
}

// Complete returns what may follow the words after stoa call.
func (c *callCmd) Complete(before []string) (next []string) {
	var op *protocol.Operation
	waits := ""
	for _, word := range before {
		switch {
		case waits != "":
			waits = ""
		case strings.HasPrefix(word, "--"):
			if name := word[2:]; !strings.Contains(name, "=") && !slices.Contains(callSwitches, name) {
				waits = name
			}
		case op == nil:
			op = protocol.Lookup(strings.ReplaceAll(word, "-", "_"))
		}
	}
	if op == nil && waits == "" {
		for _, o := range protocol.Operations() {
			if o.Doors&protocol.HTTP != 0 {
				next = append(next, o.Name)
			}
		}
		return append(next, "--list")
	}
	if op != nil && waits == "" {
		for _, f := range fieldsOf(op.In) {
			next = append(next, "--"+f.name)
		}
		for _, o := range callOptions {
			next = append(next, "--"+o.name)
		}
		return append(next, "--json", "--help")
	}
	if op != nil {
		for _, f := range fieldsOf(op.In) {
			if values := f.tag.Get("enum"); f.name == waits && values != "" {
				return strings.Split(values, ",")
			}
		}
	}
	return nil
}
