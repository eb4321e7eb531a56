package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/kvscout/kvscout/events/discover"
)

// maxFileBytes bounds files that are read whole: configuration, token ids, bodies.
const maxFileBytes = 64 << 20

// readBounded reads a file, "-" being stdin, of at most maxFileBytes.
func readBounded(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileName(path), err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: over %d bytes", fileName(path), maxFileBytes)
	}
	return data, nil
}

// fileName names an input in an error.
func fileName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// applyFile reads the YAML file at path: its keys are the names of flags, and set those that were not set otherwise;
// "workers" lists workers, which it returns. Whatever it does not know is an error that names key and line (case 149).
func applyFile(flags *pflag.FlagSet, path string) ([]discover.Worker, error) {
	data, err := readBounded(path, nil)
	if err != nil {
		return nil, misuse("config: %w", err)
	}
	workers, err := readFile(flags, data)
	if err != nil {
		return nil, misuse("config %s: %w", path, err)
	}
	return workers, nil
}

// readFile is applyFile for the content of a file.
func readFile(flags *pflag.FlagSet, data []byte) ([]discover.Worker, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	f := configFile{flags: flags}
	err = f.read(root)
	return f.workers, err
}

// parseYAML reads the one document of a file; nil for an empty one.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); err != io.EOF {
		return nil, fmt.Errorf("line %d: a second document", more.Line)
	}
	return doc.Content[0], nil
}

// configFile applies a parsed file to flags.
type configFile struct {
	flags   *pflag.FlagSet
	workers []discover.Worker
}

func (c *configFile) read(root *yaml.Node) error {
	if root == nil || root.Tag == "!!null" {
		return nil
	}
	return eachKey(root, func(key string, value *yaml.Node) (err error) {
		switch key {
		case "workers":
			c.workers, err = readWorkers(value)
			return err
		case "sources":
			key = "source"
		case "source", "config", "help", "version":
			return c.unknown()
		}
		f := c.flags.Lookup(strings.ReplaceAll(key, "_", "-"))
		if f == nil || strings.Contains(key, "-") {
			return c.unknown()
		}
		values, err := scalars(value, repeatable(f))
		if err != nil {
			return err
		}
		if f.Changed { // by its flag or variable, which go first
			return nil
		}
		return setFlag(c.flags, f, values)
	})
}

// unknown lists the keys that would have been known.
func (c *configFile) unknown() error {
	known := []string{"workers", "sources"}
	c.flags.VisitAll(func(f *pflag.Flag) {
		if !notSettings[f.Name] && f.Name != "config" && f.Name != "source" {
			known = append(known, fileKey(f.Name))
		}
	})
	slices.Sort(known)
	return fmt.Errorf("unknown key (known: %s)", strings.Join(known, ", "))
}

// eachKey calls fn for each pair of a mapping. It goes on after an error and returns all, each with line and key.
func eachKey(node *yaml.Node, fn func(key string, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want keys and values, got %s", node.Line, nodeKind(node))
	}
	var faults []error
	seen := make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		err := error(nil)
		if first, dup := seen[key.Value]; dup {
			err = fmt.Errorf("given already on line %d", first)
		} else if err = noAlias(value); err == nil {
			err = fn(key.Value, value)
		}
		seen[key.Value] = key.Line
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: key %q: %w", key.Line, key.Value, err))
		}
	}
	return errors.Join(faults...)
}

// noAlias refuses aliases: a file must say what it means in place.
func noAlias(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		return errors.New("aliases are not understood")
	}
	return nil
}

// scalars are the values of a flag in the file: one, or a list for a flag that may be repeated.
func scalars(node *yaml.Node, list bool) ([]string, error) {
	items := []*yaml.Node{node}
	if list {
		if node.Kind != yaml.SequenceNode {
			return nil, fmt.Errorf("want a list, got %s", nodeKind(node))
		}
		items = node.Content
	}
	var out []string
	for _, n := range items {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, fmt.Errorf("want one value, got %s", nodeKind(n))
		}
		out = append(out, n.Value)
	}
	return out, nil
}

func nodeKind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a nested level"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "nothing"
	default:
		return "a value"
	}
}
