package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// wants returns the check of a command's arguments, by their names in its usage. A last
// name that ends in "..." stands for one or more.
func wants(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(names); {
		case len(args) < n:
			missing := strings.TrimSuffix(strings.Join(names[len(args):], ", "), "...")
			return fmt.Errorf("missing %s; want %s", missing, usage(cmd))
		case len(args) > n && (n == 0 || !strings.HasSuffix(names[n-1], "...")):
			return fmt.Errorf("unexpected argument %q; want %s", args[n], usage(cmd))
		}
		return nil
	}
}

// wantsPairs is the check of STATE and one or more pairs of KEY and VALUE.
func wantsPairs(cmd *cobra.Command, args []string) error {
	if err := wants("STATE", "KEY", "VALUE...")(cmd, args); err != nil {
		return err
	}
	if len(args)%2 == 0 {
		return fmt.Errorf("missing VALUE for the last KEY, %s; want %s", args[len(args)-1], usage(cmd))
	}
	return nil
}

// usage returns the usage of a command, which has a parent.
func usage(cmd *cobra.Command) string { return cmd.Parent().CommandPath() + " " + cmd.Use }

// argumentNames returns the names of a command's arguments in its usage.
func argumentNames(cmd *cobra.Command) []string { return strings.Fields(cmd.Use)[1:] }
