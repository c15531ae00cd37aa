package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// A tomlFile is the settings of a TOML file. The precedence is flag, environment, file, default,
// so it does not resolve a setting that the environment has. A key without a setting is an error.
type tomlFile struct{ values map[string]any }

func (f *tomlFile) read(r io.Reader) (kong.Resolver, error) {
	f.values = map[string]any{}
	if err := toml.NewDecoder(r).Decode(&f.values); err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	return f, nil
}

// Validate always succeeds: faults reports unknown keys together with all other faults.
func (f *tomlFile) Validate(*kong.Application) error { return nil }

// faults returns all faults: those that the parser found in the values of the settings, and every
// key of the file that has no flag.
func (f *tomlFile) faults(app *kong.Application, err error) error {
	var known []string
	for _, command := range app.Children {
		for _, flag := range command.Flags {
			known = append(known, flag.Name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		if !slices.Contains(known, key) {
			err = errors.Join(err, fmt.Errorf("configuration file: there is no setting %q%s; stoa serve --help lists them", key, didYouMean(key, known)))
		}
	}
	return err
}

// Resolve returns the value of a flag.
func (f *tomlFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	return f.values[flag.Name], nil
}
