package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is a flag that holds one of a few words.
type choice struct {
	word  *string
	words []string
}

var _ pflag.Value = choice{}

// Type implements pflag.Value.
func (c choice) Type() string { return "word" }

// String implements pflag.Value.
func (c choice) String() string {
	if c.word == nil { // pflag asks the zero choice what it prints
		return ""
	}
	return *c.word
}

// Set implements pflag.Value.
func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return wantOneOf(c.words)
	}
	*c.word = text
	return nil
}

func wantOneOf(words []string) error {
	last := len(words) - 1
	return fmt.Errorf("want %s or %s", strings.Join(words[:last], ", "), words[last])
}

// flagError returns what is wrong with the flags of a command line, in the words of its user.
func flagError(_ *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return badValue("--"+bad.GetFlag().Name, bad)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag: -%s; arguments that begin with a minus go after --", unknown.GetSpecifiedShortnames())
	}
	return err
}

// badValue says that what gave a flag its value gave one that the flag cannot take.
func badValue(source string, bad *pflag.InvalidValueError) error {
	problem := bad.Unwrap() // of a flag of our own, in our words
	switch bad.GetFlag().Value.Type() {
	case "bool":
		problem = errors.New("want true or false")
	case "int", "int64":
		problem = errors.New("want an integer of 64 bits")
	case "duration":
		problem = errors.New("want a duration, such as 500ms or 1m30s")
	}
	return fmt.Errorf("%s is %q, %w", source, bad.GetValue(), problem)
}

// hideInherited leaves common flags that cmd does not use out of its help.
func hideInherited(cmd *cobra.Command, names ...string) {
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			f.Hidden = f.Hidden || slices.Contains(names, f.Name)
		})
		help(cmd, args)
	})
}
