package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version says which build this is.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

func (v version) String() string { return fmt.Sprintf("tine %s (%s)", v.Version, v.Go) }

// currentVersion returns what the Go tool recorded in the binary.
func currentVersion() version {
	v := version{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  tine version\n  tine version --output json",
		Args:    wants(),
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			return c.print(v, func(t *table) { t.row(v) })
		},
	}
	hideInherited(cmd, "url", "timeout")
	return cmd
}
