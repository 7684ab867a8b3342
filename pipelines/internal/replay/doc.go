// Package replay is the program of that name.
package replay
