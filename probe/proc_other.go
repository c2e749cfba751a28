//go:build !linux

package probe

// rssUnit is the unit of ru_maxrss in bytes: macOS counts in bytes.
const rssUnit = 1
