package main

import "testing"

func TestSizeIsWhatPeopleWrite(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "65536": 65536, "64k": 64 << 10, "512m": 512 << 20, "1.5G": 3 << 29, "2GiB": 2 << 30, "1t": 1 << 40} {
		var s byteSize
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "m", "-1", "x", "1e30g", "5 m"} {
		var s byteSize
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: taken for %d", text, s)
		}
	}
}
