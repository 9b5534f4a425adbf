package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The example in README.md is what a newcomer copies first: it must compile as it stands.
func TestReadmeExampleCompiles(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	src, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("README.md has no Go example")
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "readme.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, i := range f.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	if _, err := typeCheck(fset, exportImporter(fset, goList(t, paths...)), "readme", []*ast.File{f}); err != nil {
		t.Fatal(err)
	}
}
