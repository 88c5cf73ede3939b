package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tine/api"
)

// The exit codes of the process.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnavailable = 5
)

// usageError is an error of the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// report prints err, if there is one, and returns the exit code it stands for.
func (c *cli) report(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if !c.started {
		code = exitUsage
	}
	told := errorJSON{Error: c.explain(err).Error()}
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		told.Code = problem.Code
	}
	// There is nowhere left to report a failure to print it.
	if c.wantsJSON() {
		_ = printJSON(c.err, told)
		return code
	}
	hint := ""
	if code == exitUsage && !strings.Contains(err.Error(), "--help") {
		hint = "\nRun with --help to see the usage."
	}
	_, _ = fmt.Fprintf(c.err, "tine: %s%s\n", told, hint)
	return code
}

// errorJSON is what is told of an error.
type errorJSON struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"` // the problem's, where the server answered with one
}

func (e errorJSON) String() string {
	if e.Code == "" {
		return e.Error
	}
	return e.Error + " (" + e.Code + ")"
}

// wantsJSON reports whether --output asks for JSON, also where the command line
// was not understood as far as that.
func (c *cli) wantsJSON() bool {
	if c.started {
		return c.output == "json"
	}
	line := strings.Join(c.args, " ") + " "
	if strings.Contains(line, "--output") {
		return strings.Contains(line, "--output json ") || strings.Contains(line, "--output=json ")
	}
	word, _ := c.lookupEnv(envName("output"))
	return word == "json"
}

func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	if problem := new(api.Problem); errors.As(err, &problem) {
		return exitCodeOfStatus(problem.Status)
	}
	// A url.Error is what a request ends with that got no answer.
	noAnswer := new(url.Error)
	switch {
	case errors.Is(err, context.Canceled):
		return exitError
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &noAnswer),
		errors.Is(err, api.ErrIncomplete), errors.Is(err, io.ErrUnexpectedEOF): // an answer that was cut off
		return exitUnavailable
	}
	return exitError
}

// exitCodeOfStatus returns the exit code for an HTTP answer.
func exitCodeOfStatus(status int) int {
	switch status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict:
		return exitConflict
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return exitUnavailable
	}
	return exitError
}
