//go:build !linux

package arrivals

import "time"

func fineTimer() (undo func()) { return func() {} }

func sleep(d time.Duration) { time.Sleep(d) }
