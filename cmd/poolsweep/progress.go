package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/poolsweep/poolsweep/sweep"
)

// A progress shows how far a run is: a bar on a terminal, lines elsewhere.
type progress struct {
	w     io.Writer
	quiet bool

	bars    *mpb.Progress // nil when w is no terminal
	bar     *mpb.Bar      // of the sweep under way
	loading bool          // the bar is that of the keys written before it
	live    *live         // above the bar; nil where there is no room

	columns, rows int          // of the terminal
	now           atomic.Value // string: what the bar says of the last slice

	tenths int // tenths of the sweep that a line was printed for
}

func newProgress(w *os.File, quiet bool) *progress {
	p := &progress{w: w, quiet: quiet}
	if !quiet && term.IsTerminal(int(w.Fd())) {
		p.columns, p.rows, _ = term.GetSize(int(w.Fd()))
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond))
	}
	return p
}

// event takes an event of package sweep.
func (p *progress) event(e sweep.Event) {
	if p.quiet {
		return
	}
	name := fmt.Sprintf("%s, depth %d", e.Test, e.Depth)
	if p.bars != nil {
		p.draw(name, e)
		return
	}
	switch {
	case e.Note != "":
		fmt.Fprintf(p.w, "%s: %s\n", name, e.Note)
	case e.Load > 0:
		if e.Loaded == e.Load {
			fmt.Fprintf(p.w, "%s: %d keys written\n", name, e.Load)
		}
	case e.Done == 0:
		p.tenths = 0
		fmt.Fprintf(p.w, "%s: %d slices planned\n", name, e.Total)
	case e.Done*10/e.Total > p.tenths:
		p.tenths = e.Done * 10 / e.Total
		fmt.Fprintf(p.w, "%s: %d of %d slices, %v left\n", name, e.Done, e.Total, e.Left.Round(time.Second))
	}
}

// draw brings the bar up to date.
func (p *progress) draw(name string, e sweep.Event) {
	switch {
	case e.Note != "":
		// Lines written through the container stay above the bar.
		fmt.Fprintf(p.bars, "%s: %s\n", name, e.Note)
		return
	case e.Load > 0:
		if p.bar == nil || !p.loading {
			p.finish()
			p.loading = true
			p.bar = p.bars.AddBar(e.Load, mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Name(name+", writing keys ")),
				mpb.AppendDecorators(decor.CountersNoUnit(" %d / %d")))
		}
		p.bar.SetCurrent(e.Loaded)
		return
	case e.Done == 0:
		p.finish()
		p.loading = false
		p.now.Store("")
		options := []mpb.BarOption{
			mpb.PrependDecorators(decor.Name(name + " ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.now.Load().(string) })),
		}
		if p.live = nil; p.rows >= liveRows {
			p.live = newLive(e, p.columns)
			options = append(options, mpb.BarRemoveOnComplete(), mpb.BarTopExtender(p.live.fillers()...))
		}
		p.bar = p.bars.AddBar(int64(e.Total), options...)
		return
	}
	if p.live != nil {
		p.live.add(e)
	}
	p.now.Store(fmt.Sprintf(" %d clients: %.0f/s, %v left", e.Clients, e.QPS, e.Left.Round(time.Second)))
	p.bar.SetTotal(int64(e.Total), false)
	p.bar.SetCurrent(int64(e.Done))
}

// finish ends the bar of the sweep that is over.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.SetTotal(-1, true)
		p.bar = nil
	}
}

// close ends the display.
func (p *progress) close() {
	if p.bars != nil {
		p.finish()
		p.bars.Wait()
	}
}
