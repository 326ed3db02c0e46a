package it

import (
	"os/exec"
	"strings"
	"testing"
)

// The demo needs nothing but the binary; it checks itself that nothing is lost and nothing repeated over its kill.
func TestDemo(t *testing.T) {
	out, err := exec.Command(Binary(t), "demo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, piece := range []string{"kill -9", "Stored offset: {", "Nothing lost, nothing repeated"} {
		if !strings.Contains(string(out), piece) {
			t.Errorf("the demo does not say %q:\n%s", piece, out)
		}
	}
}
