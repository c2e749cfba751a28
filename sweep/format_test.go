package sweep

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/sweep/load"
)

// latencyFields are those of load.Latency, which has a JSON form of its own.
var latencyFields = []string{"hdr", "sum_ns", "over_range"}

// TestFormatIsDocumented holds docs/file-format.md to the records of a result
// file: each field of them stands there in backquotes.
func TestFormatIsDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "file-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	names := 0
	check := func(where, name string) {
		names++
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("field %q of %s is not documented", name, where)
		}
	}
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || seen[typ] {
			return
		}
		seen[typ] = true
		if typ == reflect.TypeFor[load.Latency]() {
			for _, name := range latencyFields {
				check(typ.String(), name)
			}
			return
		}
		for _, f := range reflect.VisibleFields(typ) {
			if !f.IsExported() || len(f.Index) > 1 {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
				continue
			case name != "":
				check(typ.String(), name)
			case !f.Anonymous:
				t.Errorf("field %s of %s has no name in JSON", f.Name, typ)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[record]())
	// A check of the check: a result file is known to have many fields.
	if names < 100 {
		t.Errorf("only %d fields were found", names)
	}
	if !strings.Contains(text, "`"+Schema+"`") {
		t.Errorf("the schema %s is not documented", Schema)
	}
}
