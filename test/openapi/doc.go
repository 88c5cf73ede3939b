// Package openapi checks the OpenAPI document with a validator: that it is valid, and
// that what a server takes and answers is what it says. The validator is large and
// has nothing to do with races, so the checks are left out under the race detector.
package openapi
