package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// helpCommand is cobra's, but it refuses a command that there is not.
func helpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Show the help of a command",
		Example: "  tine help\n  tine help state create",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			if len(rest) > 0 {
				return usageError{fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())}
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
		ValidArgsFunction: subcommandNames,
	}
	hideInherited(cmd, "url", "output", "timeout")
	return cmd
}

func subcommandNames(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
		for _, sub := range about.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name()+"\t"+sub.Short)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
