// Package server is the process: its configuration, the registry of named
// states, the listeners, and the order in which all of it starts and stops. It
// is the only package that knows every concrete type.
//
// Start: check the configuration, make and lock the data directory, open the
// stored states, listen, serve. Stop: fail readiness, refuse new requests, let
// those under way finish, close the listeners, then the states, then the
// database. Server.Run is that sequence, in one place.
//
// A server without requests does nothing: there is no ticker in it.
package server
