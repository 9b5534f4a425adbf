package main

import (
	"slices"
	"time"
)

// sample is what a figure was, each time it was taken.
type sample []float64

// median of no values is zero.
func (s sample) median() float64 { return s.percentile(50) }

// percentile is the nearest value that p percent of the values do not exceed; between two middle values the median is their mean.
func (s sample) percentile(p float64) float64 {
	if len(s) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(s))
	if p == 50 && len(v)%2 == 0 {
		return (v[len(v)/2-1] + v[len(v)/2]) / 2
	}
	return v[min(int(p/100*float64(len(v))), len(v)-1)]
}

// timed runs f n times, and gives the time of each in microseconds.
func timed(n int, f func(i int) error) (sample, error) {
	s := make(sample, 0, n)
	for i := range n {
		start := time.Now()
		if err := f(i); err != nil {
			return nil, err
		}
		s = append(s, micros(time.Since(start)))
	}
	return s, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// rate is n over a time: in bytes, megabytes (10⁶) a second are rate / 1e6.
func rate(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }
