package probe

// rssUnit is the unit of ru_maxrss in bytes: Linux counts in KiB.
const rssUnit = 1024
