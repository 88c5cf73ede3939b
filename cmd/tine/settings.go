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
	"gopkg.in/yaml.v3"

	"tine/server"
)

// A setting is a flag. It may also be given by an environment variable and, for
// the server, in a configuration file, under the flag's own name. The flag wins over
// the environment, the environment over the file, the file over the default.

// envName returns the environment variable of a flag: TINE_DATA_DIR for data-dir.
func envName(flag string) string {
	return "TINE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// sources tell where flags that the command line did not give have their values from.
type sources map[string]string

// of returns how an error names a flag: as what gave it its value.
func (s sources) of(flag string) string {
	if source, ok := s[flag]; ok {
		return source
	}
	return "--" + flag
}

// set gives a flag a value from a source.
func (s sources) set(flags *pflag.FlagSet, name, value, source string) error {
	err := flags.Set(name, value)
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return badValue(source, bad)
	}
	s[name] = source
	return err
}

// attribute names the source of each bad setting in an error of server.Config.Validate.
func (s sources) attribute(err error) error {
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		problems = slices.Clone(joined.Unwrap())
	}
	for i, problem := range problems {
		if bad, ok := errors.AsType[*server.SettingError](problem); ok {
			problems[i] = fmt.Errorf("%s %s", s.of(bad.Name), bad.Problem)
		}
	}
	return errors.Join(problems...)
}

// fillFromEnv sets every flag that was not given from its environment variable,
// where that is set and not empty. It reports all problems at once.
func fillFromEnv(flags *pflag.FlagSet, lookup func(string) (string, bool), from sources) error {
	var problems []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(envName(f.Name))
		if !ok || value == "" || f.Changed || f.Name == "help" {
			return
		}
		if err := from.set(flags, f.Name, value, "environment variable "+envName(f.Name)); err != nil {
			problems = append(problems, err)
		}
	})
	return errors.Join(problems...)
}

// fillFromFile sets every flag that neither the command line nor the environment
// gave from a YAML file: one mapping of flag names to scalars. Only the names in
// known may occur. It reports all problems at once.
func fillFromFile(flags *pflag.FlagSet, path string, known []string, from sources) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	pairs, err := parseMapping(text)
	if err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	var problems []error
	seen := make(map[string]bool)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		name, value := pairs[0].Value, pairs[1]
		place := fmt.Sprintf("configuration file %s, line %d: ", path, pairs[0].Line)
		switch {
		case !slices.Contains(known, name):
			err = fmt.Errorf("%sunknown key %q; the keys are %s", place, name, strings.Join(known, ", "))
		case seen[name]:
			err = fmt.Errorf("%s%s is given twice", place, name)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			err = fmt.Errorf("%s%s wants a single value", place, name)
		case flags.Changed(name):
			err = nil
		default:
			err = from.set(flags, name, value.Value, place+name)
		}
		seen[name] = true
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// parseMapping returns the keys and values of a YAML mapping, which may be empty, in turn.
func parseMapping(text []byte) ([]*yaml.Node, error) {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one document")
	}
	root := document.Content[0]
	switch {
	case root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, errors.New("want lines of the form KEY: VALUE, where keys are flag names")
	}
	return root.Content, nil
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
