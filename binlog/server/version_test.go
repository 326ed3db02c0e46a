package server

import "testing"

func TestVersionNumber(t *testing.T) {
	for version, want := range map[string]int{
		"9.7.4-2": 90704, "8.0.36": 80036, "8.4.0-log": 80400, "10.11.6-MariaDB-log": 101106, "5.5.5-10.5.27-MariaDB": 100527, "5.7.44-log": 50744, "": 0, "9": 0,
	} {
		if got := (&Info{Version: version}).VersionNumber(); got != want {
			t.Errorf("%q: %d, want %d", version, got, want)
		}
	}
}
