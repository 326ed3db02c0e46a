package standby

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

func TestProcessOfClientID(t *testing.T) {
	for _, p := range []process{
		{host: "db-7.example.org", world: "0123456789abcdef", pid: 4711, start: "88123"},
		{host: "a-0-1-2", world: "0123456789abcdef", pid: 1, start: "1"},
		{host: "mac", pid: 12},
	} {
		if got := processOf("g-c-lock", p.clientID("g-c-lock")); got != p {
			t.Errorf("%+v came back as %+v from %s", p, got, p.clientID("g-c-lock"))
		}
	}
	for _, id := range []string{"", "rdkafka", "g-c-lock", "g-c-lock-host-xyz-1-2", "g-c-lock-host-0123456789abcdef-99999999999999999999-2"} {
		if got := processOf("g-c-lock", id); got.world != "" || got.dead(self()) {
			t.Errorf("%q was taken for %+v", id, got)
		}
	}
	if got := (process{host: "h", pid: 7}).String(); got != "h (process 7)" {
		t.Error(got)
	}
}

// known is this process, of which Linux tells all.
func known(t *testing.T) process {
	t.Helper()
	me := self()
	if me.world == "" || me.start == "" || me.pid != os.Getpid() {
		t.Fatalf("%+v", me)
	}
	return me
}

// Only what can be told for certain is dead.
func TestDead(t *testing.T) {
	me := known(t)
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	other := me
	other.pid = sleep.Process.Pid
	other.start, _ = stat(other.pid)
	reused, elsewhere, unknown, twin := other, other, other, me
	reused.start = "1"
	elsewhere.world = "0123456789abcdef"
	unknown.world = ""
	twin.start = "1" // a container that is started again has the same process id
	check := func(when string, want map[string]bool) {
		t.Helper()
		for name, p := range map[string]process{"me": me, "running": other, "reused": reused, "elsewhere": elsewhere, "unknown": unknown, "twin": twin} {
			if got := p.dead(me); got != want[name] {
				t.Errorf("%s: %s is dead: %v", when, name, got)
			}
		}
	}
	check("while it runs", map[string]bool{"reused": true, "twin": true})
	if err := sleep.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for { // killed, but nobody has waited for it yet
		if _, ended := stat(other.pid); ended {
			break
		}
	}
	check("killed", map[string]bool{"running": true, "reused": true, "twin": true})
	_ = sleep.Wait()
	check("gone", map[string]bool{"running": true, "reused": true, "twin": true})
}

func TestStat(t *testing.T) {
	me := known(t)
	if start, ended := stat(me.pid); start != me.start || ended {
		t.Error(start, ended)
	}
	if n, err := strconv.Atoi(me.start); err != nil || n <= 0 {
		t.Error(me.start)
	}
	if start, _ := stat(1 << 30); start != "" {
		t.Error(start)
	}
}
