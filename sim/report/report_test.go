package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/sim/workload"
)

// Every profile's runs can be recorded: the recording is of the same run, its trace has every step, and the maps of its crash images
// are whole.
func TestRecordingTellsAll(t *testing.T) {
	for _, profile := range workload.Profiles {
		c := workload.Case{Seed: 8, Profile: profile}
		rec := Record(c, workload.RunCase)
		if plain := workload.Run(c.Seed, profile); plain.Hash != rec.Result.Hash || rec.Result.Err != nil {
			t.Fatalf("%s: hash %x, and %x when it is recorded (%v)", profile, plain.Hash, rec.Result.Hash, rec.Result.Err)
		}
		var trace bytes.Buffer
		if err := rec.Trace(&trace); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(trace.String(), "\n")
		if want := rec.Result.Steps + len(rec.Result.Ops) + len(rec.Cuts); lines < want {
			t.Errorf("%s: %d lines of trace; %d steps, operations and cuts", profile, lines, want)
		}
		if !strings.Contains(trace.String(), "write /db/data [") {
			t.Errorf("%s: no write of the data file in the trace", profile)
		}
		inFlight := 0
		for _, cut := range rec.Cuts {
			for _, f := range cut.Files {
				inFlight += len(f.State) - strings.Count(f.State, string(durable))
				if f.Path != workload.Dir+"/data" {
					continue
				}
				if len(f.Reach) != len(f.State) || len(f.Kind) != len(f.State) {
					t.Fatalf("%s: %d pages, the reach of %d and the kinds of %d", profile, len(f.State), len(f.Reach), len(f.Kind))
				}
				if cut.Metas[0].Valid && cut.Rot == nil && f.Reach[0]&1 == 0 {
					t.Errorf("%s: a valid meta page does not reach itself", profile)
				}
			}
		}
		if inFlight == 0 {
			t.Errorf("%s: in %d crash images nothing was in flight", profile, len(rec.Cuts))
		}
		var html bytes.Buffer
		if err := rec.WriteHTML(&html, "again"); err != nil {
			t.Fatal(err)
		}
		for _, outside := range []string{"http://", "https://", "src=", "<link"} {
			if text := strings.ReplaceAll(html.String(), "http://www.w3.org/2000/svg", ""); strings.Contains(text, outside) {
				t.Errorf("%s: the page has %q: it must need nothing from outside", profile, outside)
			}
		}
	}
}
