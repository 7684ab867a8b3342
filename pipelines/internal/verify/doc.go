// Package verify is the program of that name, for main and for check, which reads its
// flags. Its manual is the comment of pipelines/verify.
package verify
