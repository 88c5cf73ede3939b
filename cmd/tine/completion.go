package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout bounds how long a shell waits for the names of states.
const completionTimeout = time.Second

// completeStates offers the names of the server's states to every command below
// cmd whose first argument is a state that is there.
func (c *cli) completeStates(cmd *cobra.Command) {
	verb, rest, _ := strings.Cut(cmd.Use, " ")
	if strings.HasPrefix(rest, "STATE") && verb != "create" {
		cmd.ValidArgsFunction = c.stateNames
	}
	for _, sub := range cmd.Commands() {
		c.completeStates(sub)
	}
}

func (c *cli) stateNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || c.start(cmd, args) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	states, err := c.client().States(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.Name + "\t" + s.Kind
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
