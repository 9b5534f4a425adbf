package workload

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/simfs"
)

// TestParallelClients runs the counting clients as real goroutines: for the race detector.
func TestParallelClients(t *testing.T) {
	o := Options(rand.New(rand.NewPCG(1, 1)))
	s, err := storage.Open(simfs.Memory(), "/db", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(s); err != nil {
		t.Fatal(err)
	}
	clientsKnow := new(known)
	var clients, readers sync.WaitGroup
	for k := range 6 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := range 150 {
				i := (k + n) % counters
				v, err := increment(s, i, 7*n, clientsKnow)
				if err != nil {
					t.Error(err)
					return
				}
				clientsKnow.ack(i, v)
			}
		}()
	}
	stop := make(chan struct{})
	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				least, _ := clientsKnow.bounds()
				sn := s.Snapshot()
				for i := range counters {
					if n, err := look(sn, i); err != nil || n < least[i] {
						t.Errorf("counter %d at %d after %d was acknowledged: %v", i, n, least[i], err)
					}
				}
				sn.Release()
			}
		}()
	}
	clients.Wait()
	close(stop)
	readers.Wait()
	for {
		if more, err := s.ClearStep(); err != nil {
			t.Fatal(err)
		} else if !more {
			break
		}
	}
	if rep := s.Check(); len(rep.Faults) > 0 {
		t.Fatalf("check: %q", rep.Faults)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
