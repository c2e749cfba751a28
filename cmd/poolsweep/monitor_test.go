package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/probe"
)

// What is not known is "-" in the table and empty in CSV, in every cell but
// those of time.
func TestMonitorUnknown(t *testing.T) {
	a := &probe.Activity{At: time.Unix(0, 0).UTC(), Elapsed: time.Second}
	var table, csv bytes.Buffer
	if err := monitorTable(&table, false, time.Second)(a); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	if got, want := strings.Fields(lines[2]), len(monitorColumns)+1; len(got) != want || strings.Trim(strings.Join(got[1:], ""), "-") != "" {
		t.Errorf("%d cells %q, want the time and %d times -", len(got), got, want-1)
	}
	if err := monitorCSV(&csv)(a); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(csv.String(), "\n")
	names := strings.Split(rows[0], ",")
	if want := "1970-01-01T00:00:00Z,1000000000" + strings.Repeat(",", len(names)-2); rows[1] != want {
		t.Errorf("row %q, want %q", rows[1], want)
	}
}

// The titles stand over the ends of their cells, a group over all its columns.
func TestMonitorHeader(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 100 * time.Millisecond} {
		var text bytes.Buffer
		if err := monitorTable(&text, false, interval)(&probe.Activity{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text.String(), "\n")
		groups, titles, cells := lines[0], lines[1], lines[2]
		if len(groups) != len(cells) {
			t.Errorf("groups of %d characters over cells of %d", len(groups), len(cells))
		}
		for i := range titles {
			ends := i > len("time") && titles[i] != ' ' && (i+1 == len(titles) || titles[i+1] == ' ')
			inside := strings.HasSuffix(titles[:i+1], "hit") // of "hit %"
			if ends && !inside && cells[i] != '-' {
				t.Errorf("no cell ends below %q", titles[:i+1])
			}
		}
	}
}

// On a terminal the header comes again, elsewhere it does not.
func TestMonitorHeaderAgain(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		want     int // headers of 2·headerEvery + 1 lines
	}{{true, 3}, {false, 1}} {
		var text bytes.Buffer
		write := monitorTable(&text, tt.terminal, time.Second)
		for range 2*headerEvery + 1 {
			if err := write(&probe.Activity{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(text.String(), "time "); got != tt.want {
			t.Errorf("terminal %v: %d headers, want %d", tt.terminal, got, tt.want)
		}
	}
}

func TestDisk(t *testing.T) {
	yes, no := true, false
	late, none := 0.5, 0.0
	for _, tt := range []struct {
		a    probe.Activity
		want string
	}{
		{probe.Activity{}, "-"},
		{probe.Activity{Saving: &no, Rewriting: &no}, "no"},
		{probe.Activity{Saving: &yes, Rewriting: &no, DelayedFsyncs: &none}, "rdb"},
		{probe.Activity{Saving: &yes, Rewriting: &yes, DelayedFsyncs: &late}, "rdb,aof,late"},
		{probe.Activity{DelayedFsyncs: &late}, "late"},
	} {
		if got := disk(&tt.a); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.a, got, tt.want)
		}
	}
}
