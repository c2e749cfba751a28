package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// What is read here straight from /proc is not in gopsutil. On a system
// without /proc it is unknown.

// threadName returns the name of a thread, empty when it cannot be read.
func threadName(pid, tid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	return strings.TrimSpace(string(b))
}

// runQueueWait returns how long a thread has been ready to run without a core
// to run on, in seconds since its start. It is the second number of
// /proc/<pid>/task/<tid>/schedstat (Linux, Documentation/scheduler/
// sched-stats.rst), exact to the nanosecond, and the only direct evidence
// that a thread was held up by others.
func runQueueWait(pid, tid int) (float64, bool) {
	return readSchedstat(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
}

func readSchedstat(path string) (float64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, false
	}
	ns, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0, false
	}
	return float64(ns) / 1e9, true
}

// ownRunQueueWait returns the sum of runQueueWait over our own threads.
func ownRunQueueWait() (float64, bool) {
	paths, _ := filepath.Glob("/proc/self/task/*/schedstat")
	var sum float64
	for _, p := range paths {
		if s, ok := readSchedstat(p); ok { // a thread may have ended
			sum += s
		}
	}
	return sum, len(paths) > 0
}

// ownUsage returns our own CPU time so far in seconds and the most memory
// that we have held, in bytes.
func ownUsage() (cpu float64, maxRSS int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, u.Maxrss * rssUnit
}
