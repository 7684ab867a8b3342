// Command optiondocs writes docs/options.md: every option of the project with what its
// comment in the code says. It is run by go generate, at the root of the module:
//
//	go generate ./internal/optiondocs
//
// A test of this package fails where the page is not what the code says.
package main

//go:generate go run . -dir ../..
