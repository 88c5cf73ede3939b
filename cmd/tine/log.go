package main

import (
	"io"
	"log/slog"

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
