// Package check is the program of that name, for main. Its manual is the comment of
// pipelines/check; what it finds is package check's of pubsubio.
package check
