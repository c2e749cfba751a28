package main

import (
	"os"
	"strings"
	"unsafe"
)

// hideArgument overwrites a secret in the arguments of this process, so that
// the process list no longer shows it. On Linux and macOS Go's os.Args are
// the memory that the system reads for it; elsewhere this changes nothing
// but our own copy. What was read from os.Args must have been copied before.
func hideArgument(secret string) {
	for _, arg := range os.Args[1:] {
		i := strings.Index(arg, secret)
		if i < 0 {
			continue
		}
		b := unsafe.Slice(unsafe.StringData(arg), len(arg))
		for j := range len(secret) {
			b[i+j] = '*'
		}
	}
}
