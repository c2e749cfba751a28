package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/verify"
	"github.com/poolsweep/poolsweep/sweep"
)

// A pageTable is a table of a page. The first cell of a row is its head.
type pageTable struct {
	Caption string
	Columns []string
	Rows    []pageRow
	Pairs   bool // names and values, without titles
}

type pageRow struct {
	Cells []string
	Class string // knee or peak, for its colour
}

// newPageTable makes a table of the columns that the other formats have, with
// what mark says in the last one. Columns without a value are left out.
func newPageTable[R any](caption string, columns []column[R], rows []R, mark func(R) string) pageTable {
	t := pageTable{Caption: caption}
	kept := shown(columns, rows)
	for _, c := range kept {
		t.Columns = append(t.Columns, c.title)
	}
	marked := slices.ContainsFunc(rows, func(r R) bool { return mark(r) != "" })
	if marked {
		t.Columns = append(t.Columns, "")
	}
	for _, r := range rows {
		var row pageRow
		for _, c := range kept {
			row.Cells = append(row.Cells, grouped(c.cell(r)))
		}
		if marked {
			note := strings.TrimPrefix(mark(r), "< ")
			row.Cells = append(row.Cells, note)
			for _, class := range []string{"peak", "knee"} {
				if slices.Contains(strings.Split(note, ", "), class) {
					row.Class = class
				}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// grouped puts commas between the thousands of a number; other text stays as
// it is.
func grouped(cell string) string {
	whole, fraction, _ := strings.Cut(cell, ".")
	if _, err := strconv.ParseUint(whole, 10, 64); err != nil || len(whole) < 4 {
		return cell
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// sweepTables are those of the i-th sweep: its steps and, where they are known,
// the commands of a mix and the nodes of a cluster.
func sweepTables(d *Document, i int) []pageTable {
	a := d.Analyses[i]
	tables := []pageTable{newPageTable("Steps", columns, a.Steps, func(s analyze.Step) string { return marks(a, s) })}
	if m, clients := rowTrial(d.measured(d.Curves[i]), a); m != nil && len(m.Commands) > 0 {
		tables = append(tables, newPageTable(fmt.Sprintf("By command, at %d clients", clients), commandColumns, commandRows(m),
			func(commandRow) string { return "" }))
	}
	if i < len(d.Nodes) && len(d.Nodes[i]) > 0 {
		tables = append(tables, newPageTable("By node, each with its own clients", nodeColumns, d.Nodes[i],
			func(n *analyze.Analysis) string { return n.Reason }))
	}
	if r := d.rates(a); r != nil {
		tables = append(tables, newPageTable(d.rateCaption(r), rateColumns, r.Rows, func(row analyze.RateRow) string { return rateMark(r, row) }))
	}
	return tables
}

// verification is what verifying the pool has found, a table for each rate.
func verification(r *verify.Result) *pageSection {
	v := r.Verdict()
	s := &pageSection{ID: "verification", Name: "Verification of the pool", Sentences: sentences(v.Sentences)}
	for _, w := range v.Warnings {
		s.Sentences = append(s.Sentences, pageSentence{"Warning", unbroken.Replace(w) + "."})
	}
	for _, l := range r.Levels {
		caption := fmt.Sprintf("At %s requests/s, %s %% of what one client carries", grouped(throughput(analyze.Quantity(l.Rate))), percent(l.Share, 0))
		s.Tables = append(s.Tables, newPageTable(caption, verifyColumns, l.Rows,
			func(row verify.Row) string { return verifyMark(r, v, l, row) }))
	}
	return s
}

// pair is a row of a table of names and values.
type pair struct{ name, value string }

// pairs makes a table of those that have a value.
func pairs(caption string, all ...pair) pageTable {
	t := pageTable{Caption: caption, Pairs: true}
	for _, p := range all {
		if p.value != "" {
			t.Rows = append(t.Rows, pageRow{Cells: []string{p.name, p.value}})
		}
	}
	return t
}

// environment is what a result file tells of the server, the machine and the
// plan.
func environment(h *sweep.Header) []pageTable {
	s, p := h.Server, h.Plan
	return []pageTable{
		pairs("Server",
			pair{"target", target(h)},
			pair{"server", s.Title()},
			pair{"mode", s.Mode},
			pair{"role", s.Role},
			pair{"masters", positive(len(s.Nodes))},
			pair{"appendonly", s.AppendOnly},
			pair{"appendfsync", s.AppendFsync},
			pair{"save", s.Save},
			pair{"io-threads", positive(s.IOThreads)},
			pair{"maxclients", grouped(positive(int(s.MaxClients)))},
			pair{"clients before", grouped(positive(int(s.ConnectedClients)))},
			pair{"used memory", bytesOf(s.UsedMemoryBytes)},
			pair{"maxmemory", bytesOf(s.MaxMemoryBytes)},
			pair{"maxmemory-policy", s.MaxMemoryPolicy},
		),
		pairs("Generator",
			pair{"poolsweep", h.Build},
			pair{"machine", strings.TrimSpace(fmt.Sprintf("%s %s", h.Host.OS, h.Host.Arch))},
			pair{"cores", positive(h.Host.Cores)},
			pair{"Go", h.Host.Go},
			pair{"event loops", positive(p.Threads)},
			pair{"most clients", grouped(positive(h.Clients))},
			pair{"limited by", h.Limit},
		),
		pairs("Plan",
			pair{"workloads", workloadNames(p)},
			pair{"load", plan(p)},
			pair{"warm-up", duration(p.Warmup)},
			pair{"budget", duration(p.Budget)},
			pair{"tolerance", percent(analyze.Quantity(p.Tolerance), 0) + " %"},
			pair{"seed", strconv.FormatUint(p.Seed, 10)},
			pair{"idle connections", positive(p.Idle)},
			pair{"connections", map[bool]string{true: "one for each request"}[p.PerRequest]},
		),
	}
}

func workloadNames(p sweep.Plan) string {
	var names []string
	for _, w := range p.Workloads {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// bytesOf prints a size with three digits, nothing for none.
func bytesOf(n int64) string {
	if n <= 0 {
		return ""
	}
	x, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, next
	}
	return strconv.FormatFloat(x, 'g', 3, 64) + " " + unit
}
