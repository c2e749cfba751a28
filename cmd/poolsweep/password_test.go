package main

import "testing"

func TestURLPassword(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"redis://bob:hunter2@db:6379/1", "hunter2"},
		{"redis://:p%40ss:w@db", "p%40ss:w"},
		{"bob:hunter2@db:6379", "hunter2"},
		{"unix://:hunter2@/run/redis.sock", "hunter2"},
		{"redis://bob@db:6379", ""},
		{"redis://db:6379", ""},
		{"--format=table", ""},
		{"", ""},
	} {
		from, to := urlPassword(tt.in)
		if got := tt.in[from:to]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.in, got, tt.want)
		}
	}
}
