package analyze

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCodesAreDocumented holds docs/reading-a-report.md to the code: it has a
// heading for each warning code there is, and for no other.
func TestCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "reading-a-report.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Warning codes\n")
	if !found {
		t.Fatal("docs/reading-a-report.md has no section \"Warning codes\"")
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(section, -1) {
		code := strings.Trim(m[1], "`")
		if m[1] != "`"+code+"`" {
			t.Errorf("heading %q; want one code in backquotes", m[1])
		}
		if documented[code] {
			t.Errorf("code %q is documented twice", code)
		}
		documented[code] = true
	}
	codes := warningCodes(t)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !documented[code] {
			t.Errorf("%s = %q is not documented", codes[code], code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(documented)) {
		if codes[code] == "" {
			t.Errorf("code %q is documented, but there is none", code)
		}
	}
}

// warningCodes returns the names of the constants Warn… and Gate… of
// warnings.go by their values.
func warningCodes(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "warnings.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string]string)
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, s := range block.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if !strings.HasPrefix(name.Name, "Warn") && !strings.HasPrefix(name.Name, "Gate") {
					continue
				}
				var literal *ast.BasicLit
				if i < len(spec.Values) {
					literal, _ = spec.Values[i].(*ast.BasicLit)
				}
				if literal == nil || literal.Kind != token.STRING {
					t.Errorf("%s is not a string as it stands", name.Name)
					continue
				}
				code, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if other := codes[code]; other != "" {
					t.Errorf("%s and %s are both %q", other, name.Name, code)
				}
				codes[code] = name.Name
			}
		}
	}
	// A check of the check: the file is known to hold more than a handful.
	if len(codes) < 20 {
		t.Errorf("only %d codes were found in warnings.go", len(codes))
	}
	return codes
}
