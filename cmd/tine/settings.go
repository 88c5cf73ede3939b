package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
)

// A setting is a flag. It may also be given by an environment variable and, for
// the server, in a configuration file, under the flag's own name. The flag wins over
// the environment, the environment over the file, the file over the default.

// envName returns the environment variable of a flag: TINE_DATA_DIR for data-dir.
func envName(flag string) string {
	return "TINE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFromEnv sets every flag that was not given from its environment variable,
// where that is set and not empty. It reports all problems at once.
func fillFromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var problems []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(envName(f.Name))
		if !ok || value == "" || f.Changed || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			problems = append(problems, fmt.Errorf("environment variable %s: %w", envName(f.Name), err))
		}
	})
	return errors.Join(problems...)
}

// fillFromFile sets every flag that neither the command line nor the environment
// gave from a YAML file: one mapping of flag names to scalars. Only the names in
// known may occur. It reports all problems at once.
func fillFromFile(flags *pflag.FlagSet, path string, known []string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	var settings map[string]yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&settings); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration file %s: it holds more than one document", path)
	}
	var problems []error
	for _, name := range sortedByLine(settings) {
		node := settings[name]
		if err := setFromNode(flags, name, node, known); err != nil {
			problems = append(problems, fmt.Errorf("configuration file %s, line %d: %w", path, node.Line, err))
		}
	}
	return errors.Join(problems...)
}

func setFromNode(flags *pflag.FlagSet, name string, node yaml.Node, known []string) error {
	flag := flags.Lookup(name)
	switch {
	case flag == nil || !slices.Contains(known, name):
		return fmt.Errorf("unknown key %q; the keys are %s", name, strings.Join(known, ", "))
	case node.Kind != yaml.ScalarNode || node.Tag == "!!null":
		return fmt.Errorf("%s wants a single value", name)
	case flag.Changed:
		return nil
	}
	return flags.Set(name, node.Value)
}

func sortedByLine(settings map[string]yaml.Node) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Compare(settings[a].Line, settings[b].Line)
	})
}

// printSettings writes the values of the named flags as a configuration file.
func printSettings(out io.Writer, flags *pflag.FlagSet, names []string) error {
	document := yaml.Node{Kind: yaml.MappingNode}
	for _, name := range names {
		value := &yaml.Node{Kind: yaml.ScalarNode, Value: flags.Lookup(name).Value.String()}
		if value.Value == "" {
			value.Style = yaml.DoubleQuotedStyle // plain, it would be no value
		}
		document.Content = append(document.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	encoder := yaml.NewEncoder(out)
	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return encoder.Close()
}
