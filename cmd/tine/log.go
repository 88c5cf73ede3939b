package main

import (
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tine/server"
)

// newLogger returns the logger that config asks for.
func newLogger(out io.Writer, config server.Config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: config.LogLevel}
	if config.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}

// level is a flag that holds a level of the log.
type level struct{ level *slog.Level }

var _ pflag.Value = level{}

func levelWords() []string { return []string{"debug", "info", "warn", "error"} }

// Type implements pflag.Value.
func (l level) Type() string { return "level" }

// String implements pflag.Value.
func (l level) String() string {
	if l.level == nil { // pflag asks the zero level what it prints
		return ""
	}
	return strings.ToLower(l.level.String())
}

// Set implements pflag.Value, in upper or lower case.
func (l level) Set(text string) error {
	if !slices.Contains(levelWords(), strings.ToLower(text)) {
		return wantOneOf(levelWords())
	}
	return l.level.UnmarshalText([]byte(text))
}
