package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"tine/api"
	"tine/mapstate"
)

// explained is an error in the words of the command line.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// explain returns an error of a call to the server in the words of the command line,
// and any other error, or one that is explained, as it is.
func (c *cli) explain(err error) error {
	if _, done := errors.AsType[*explained](err); done || !c.called {
		return err
	}
	text := ""
	if _, answered := errors.AsType[*api.Problem](err); !answered {
		text = c.explainNoAnswer(err)
	} else if errors.Is(err, mapstate.ErrUnknownState) && c.state != "" {
		text = c.explainUnknownState()
	}
	if text == "" {
		return err
	}
	return &explained{text: text, err: err}
}

func (c *cli) explainNoAnswer(err error) string {
	call, ok := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, context.DeadlineExceeded), ok && call.Timeout():
		return fmt.Sprintf("the server at %s did not answer within %s; --timeout sets how long to wait", c.url, c.timeout)
	case !ok:
		return ""
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Sprintf(`no server answers at %s (%v); start one with "tine serve", or name another with --url`, c.url, op.Err)
	}
	return fmt.Sprintf("the server at %s gave no answer: %v", c.url, call.Err)
}

func (c *cli) explainUnknownState() string {
	if c.verb == "delete" {
		return fmt.Sprintf(`there is no state %q; "tine state list" lists those that there are`, c.state)
	}
	return fmt.Sprintf(`there is no state %q; create it with "tine state create %[1]s --kind KIND"`, c.state)
}
