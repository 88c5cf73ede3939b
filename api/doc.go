// Package api is what travels on the wire: the typed requests and answers, the
// routes and their handlers, the table of problems, and the Go client.
//
// A request is read whole, within its limit, decoded in one pass and checked
// before anything is done; its answer is encoded whole before the status is
// written. The one exception is the stream of entries, whose last line tells
// whether it is complete.
//
//	body.go, decode*.go   bytes -> Request; every error says which member, and where in it
//	encode.go             Result, Entry, Progress -> bytes
//	errors.go, problem.go errors -> problems (RFC 9457), and back in the client
//	adapter.go, routes.go one adapter around all handlers: request ids, log, metrics, panics
//	client*.go            every call as a typed method
//
// Errors keep their identity across the wire: errors.Is(err, mapstate.ErrStaleTx)
// holds for the client where it held for the server.
package api
