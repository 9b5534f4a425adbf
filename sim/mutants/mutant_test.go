package mutants

import (
	"os"
	"path/filepath"
	"testing"
)

// Mutants rot as the engine changes: one whose lines have gone tests nothing.
func TestMutantsApply(t *testing.T) {
	all, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 {
		t.Errorf("only %d mutants", len(all))
	}
	for _, m := range all {
		source, err := os.ReadFile(filepath.Join("../..", m.File))
		if err != nil {
			t.Error(err)
			continue
		}
		if mutated, ok := m.Apply(string(source)); !ok || mutated == string(source) {
			t.Errorf("%s: its old lines do not stand in %s once, or it changes nothing", m.Name, m.File)
		}
	}
}
