package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// tomlResolver reads settings from a TOML file. The order is flag, environment,
// file, default; so a setting that the environment gives is left to it. A key
// that no setting has is an error.
func tomlResolver(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := toml.NewDecoder(r).Decode(&values); err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	return &tomlFile{values: values}, nil
}

type tomlFile struct{ values map[string]any }

// Validate refuses keys that no flag has.
func (f *tomlFile) Validate(app *kong.Application) error {
	var known []string
	for _, command := range app.Children {
		for _, flag := range command.Flags {
			known = append(known, flag.Name)
		}
	}
	for key := range f.values {
		if !slices.Contains(known, key) {
			return fmt.Errorf("configuration file: there is no setting %q; stoa serve --help lists them", key)
		}
	}
	return nil
}

// Resolve gives the value of a flag.
func (f *tomlFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	return f.values[flag.Name], nil
}
