package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout bounds how long a shell waits for the names of states.
const completionTimeout = time.Second

// opWords returns the names of the updaters.
func opWords() []string {
	return []string{"append", "avg", "concat", "count", "first", "max", "merge", "min", "set", "sum", "union"}
}

func shellWords() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (c *cli) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long: `Print the script that completes commands, flags and the names of states in bash,
zsh, fish or powershell. The shell reads it when it starts.`,
		Example: `  source <(tine completion bash)
  tine completion zsh > "${fpath[1]}/_tine"
  tine completion fish > ~/.config/fish/completions/tine.fish`,
		Args: wants("SHELL"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writeCompletion(c.out, cmd.Root(), args[0])
	}
	hideInherited(cmd, "url", "output", "timeout")
	return cmd
}

func writeCompletion(out io.Writer, root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return usageError{fmt.Errorf("unknown shell %q, %w", shell, wantOneOf(shellWords()))}
}

// completeFlag offers words as values of a flag, which cmd has.
func completeFlag(cmd *cobra.Command, name string, words []string) {
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err)
	}
}

// completeArguments completes the arguments of every command below cmd by their
// names in its usage.
func (c *cli) completeArguments(cmd *cobra.Command) {
	if cmd.HasParent() && !strings.Contains(cmd.Use, "FILE") {
		cmd.ValidArgsFunction = c.argumentWords
	}
	for _, sub := range cmd.Commands() {
		c.completeArguments(sub)
	}
}

// argumentWords offers what the next argument of a command can be.
func (c *cli) argumentWords(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	if names := argumentNames(cmd); len(args) < len(names) {
		switch names[len(args)] {
		case "STATE":
			words = c.stateWords(cmd)
		case "OP":
			words = opWords()
		case "SHELL":
			words = shellWords()
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// stateWords returns the names of the server's states. A new state has a name of its own.
func (c *cli) stateWords(cmd *cobra.Command) []string {
	if cmd.Name() == "create" || c.start(cmd, nil) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	states, err := c.client().States(ctx)
	if err != nil {
		return nil
	}
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = s.Name + "\t" + s.Kind
	}
	return words
}
