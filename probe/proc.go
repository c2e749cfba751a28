package probe

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// What is read here straight from /proc and /sys is not in gopsutil, or costs
// less so. On a system without them it is unknown.

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

// swapOf returns how much memory of a process is swapped out, in bytes.
func swapOf(pid int) (int64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	return parseSwap(string(b))
}

// parseSwap finds VmSwap in the text of /proc/<pid>/status, where it is in KiB
// ("VmSwap:\t       0 kB"), and returns it in bytes. See proc_pid_status(5).
func parseSwap(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, "VmSwap:")
		if !found {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) != 2 || fields[1] != "kB" {
			return 0, false
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || kib < 0 || kib > math.MaxInt64>>10 {
			return 0, false
		}
		return kib << 10, true
	}
	return 0, false
}

// linkSpeed returns the speed of an interface in bits per second, given its
// directory below /sys/class/net. It is unknown for loopback, and for a
// virtual interface that is not made of real ones (tun, veth), of which the
// kernel tells a figure that means nothing.
func linkSpeed(dir string) (int64, bool) {
	if _, err := os.Stat(filepath.Join(dir, "device")); err != nil {
		// A bond and a VLAN have links to what they are made of.
		if lower, _ := filepath.Glob(filepath.Join(dir, "lower_*")); len(lower) == 0 {
			return 0, false
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "speed"))
	if err != nil {
		return 0, false
	}
	return parseLinkSpeed(string(b))
}

// parseLinkSpeed reads the speed of an interface, which the kernel has in
// Mbit/s, and returns it in bits per second. It is unknown when it is -1, or
// one of the forms that drivers give -1 in 16 and 32 bits. See Linux,
// Documentation/ABI/testing/sysfs-class-net.
func parseLinkSpeed(text string) (int64, bool) {
	mbit, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || mbit <= 0 || mbit == math.MaxUint16 || mbit >= math.MaxInt32 {
		return 0, false
	}
	return mbit * 1_000_000, true
}
