package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"
)

// readTOML returns the keys of a configuration file, if there is one.
func readTOML(file string) (map[string]any, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var keys map[string]any
	err = toml.Unmarshal(raw, &keys)
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := e.Position()
		return nil, fmt.Errorf("configuration file: line %d: %w", line, err)
	}
	return keys, err
}
