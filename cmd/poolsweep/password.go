package main

import (
	"os"
	"strings"
	"unsafe"
)

// hideArguments overwrites the passwords in the arguments of this process, the
// one given and those of URLs, so that the process list no longer shows them.
// On Linux and macOS the strings of os.Args are the memory that the system
// reads for it; elsewhere this changes our own copy only.
func hideArguments(password string) {
	for _, arg := range os.Args[1:] {
		from, to := urlPassword(arg)
		if password != "" && (arg == password || arg == "-a"+password || arg == "--pass="+password || arg == "-a="+password) {
			from, to = len(arg)-len(password), len(arg)
		}
		b := unsafe.Slice(unsafe.StringData(arg), len(arg))
		for i := from; i < to; i++ {
			b[i] = '*'
		}
	}
}

// urlPassword returns where the password stands in scheme://user:password@host,
// as it is written there; 0, 0 when there is none.
func urlPassword(arg string) (from, to int) {
	start := 0
	if i := strings.Index(arg, "://"); i >= 0 {
		start = i + len("://")
	}
	at := strings.LastIndexByte(arg, '@')
	if at < start {
		return 0, 0
	}
	colon := strings.IndexByte(arg[start:at], ':')
	if colon < 0 {
		return 0, 0
	}
	return start + colon + 1, at
}
