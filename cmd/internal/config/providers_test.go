package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConfigProvidersEnvFileAndDir resolves references as Kafka does it, with the limits that the worker sets.
func TestConfigProvidersEnvFileAndDir(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"secrets.properties": "db = pass\\u0077ord\nempty=\nnested=${env:SET}\n", "db-password": "from-dir\n", "open/x": "opened", "broken.properties": `a=\u00`,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "db-password"), filepath.Join(folder, "open", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "open", "x"), filepath.Join(folder, "open", "..data")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SET", "from-env")
	const class = "org.apache.kafka.common.config.provider."
	worker := &file{value: map[string]string{
		"config.providers":                              "vault, some, safe",
		"config.providers.vault.class":                  "com.example.Vault",
		"config.providers.some.class":                   class + "EnvVarConfigProvider",
		"config.providers.some.param.allowlist.pattern": "S.*",
		"config.providers.safe.class":                   "DirectoryConfigProvider",
		"config.providers.safe.param.allowed.paths":     filepath.Join(folder, "open"),
	}}
	p := newProviders(worker, func(key, format string, args ...any) { t.Errorf("%s: %s", key, format) })
	for reference, want := range map[string]string{
		"${env:SET}":              "from-env",
		"${env::SET}":             "from-env",
		"a${env:SET}b${env:SET}c": "afrom-envbfrom-envc",
		"${some:SET}":             "from-env",
		"${file:" + folder + "/secrets.properties:db}":     "password",
		"${file:" + folder + "/secrets.properties:empty}":  "",
		"${file:" + folder + "/secrets.properties:nested}": "${env:SET}", // as Kafka: once
		"${dir:" + folder + ":db-password}":                "from-dir",
		"${safe:" + folder + "/open:x}":                    "opened",
		"${safe:" + folder + "/open:..data}":               "opened",
		"${other:x} ${x} $SET":                             "${other:x} ${x} $SET",
		"${VAR:-fallback}":                                 "${VAR:-fallback}",
	} {
		if got, err := p.resolve(reference); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", reference, got, err, want)
		}
	}
	for reference, want := range map[string]string{
		"${env:NOT_SET_ANYWHERE}":       "the environment has no NOT_SET_ANYWHERE",
		"${env:/x:SET}":                 "the environment has no paths",
		"${some:PATH}":                  "param.allowlist.pattern does not allow",
		"${some:UNSET}":                 "param.allowlist.pattern does not allow",
		"${file:secrets.properties:db}": "must be absolute",
		"${file:" + folder + "/secrets.properties:other}": "has no key other",
		"${file:" + folder + "/none:db}":                  "no such file",
		"${file:" + folder + "/broken.properties:a}":      "is not a properties file: line 1",
		"${dir:" + folder + ":../x}":                      "must be the name of a file in it",
		"${dir:" + folder + ":..}":                        "must be the name of a file in it",
		"${safe:" + folder + ":db-password}":              "param.allowed.paths does not allow this path",
		"${safe:" + folder + "/open/..:db-password}":      "param.allowed.paths does not allow this path",
		"${safe:" + folder + "/openly:x}":                 "param.allowed.paths does not allow this path",
		"${safe:" + folder + "/open:link}":                "param.allowed.paths does not allow where this path leads to",
		"${vault:secret/db:password}":                     "its class com.example.Vault cannot be loaded here; there are org.apache.kafka",
	} {
		if got, err := p.resolve(reference); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", reference, got, err, want)
		}
	}
}

// TestUnknownConfigProviderIsSaid: what names none is taken as it is, as Kafka does it, which is hardly what was meant.
func TestUnknownConfigProviderIsSaid(t *testing.T) {
	cfg, err := load(t, workerText, connectorJSON("database.password=${vault:secret/db:password}", "database.user=${x}"))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, w := range cfg.Warnings {
		if strings.Contains(w.Text, "config.providers") {
			said = append(said, w.Key)
		}
	}
	if got := cfg.Connectors[0].Password.Reveal(); got != "${vault:secret/db:password}" || !slices.Equal(said, []string{"database.password"}) {
		t.Errorf("%s, said of %v", got, said)
	}
}

// TestConfigProvidersDeclared: what is wrong with their declaration stops the start.
func TestConfigProvidersDeclared(t *testing.T) {
	_, err := load(t, workerText+"config.providers=a,b,c\nconfig.providers.a.class=x.FileConfigProvider\nconfig.providers.a.param.allowed.paths=rel\n"+
		"config.providers.c.class=EnvVarConfigProvider\nconfig.providers.c.param.allowlist.pattern=[\n", connectorJSON())
	if got, want := keysOf(err), []string{"config.providers.a.param.allowed.paths", "config.providers.b.class", "config.providers.c.param.allowlist.pattern"}; !slices.Equal(got, want) {
		t.Errorf("faults of %v: %v", got, err)
	}
}

// TestConfigProvidersAreSaid to be in force: only a setting that none of them knows has no effect, as one that is misspelt.
func TestConfigProvidersAreSaid(t *testing.T) {
	cfg, err := load(t, workerText+"config.providers=safe\nconfig.providers.safe.class=DirectoryConfigProvider\n"+
		"config.providers.safe.param.allowed.paths=/run/secrets\nconfig.providers.safe.param.allowlist.pattern=.*\nconfig.providers.safe.param.allowed.path=/x\n", connectorJSON())
	if err != nil {
		t.Fatal(err)
	}
	if w := cfg.Warnings; len(w) != 1 || w[0].Key != "config.providers.safe.param.allowed.path" || !strings.Contains(w[0].Text, "without effect") {
		t.Errorf("%v", w)
	}
	if strings.Contains(string(Markdown()), "roviders are not built") {
		t.Error("the documentation says that there are none")
	}
}

// TestSecretsAreReadAgain: what providers have is read at each login, of MySQL and of each Kafka client.
func TestSecretsAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return "${dir:" + folder + ":" + name + "}" }
	put("mysql", "old-mysql")
	put("kafka", "old-kafka")
	const module = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"u\" password=\""
	jaas := module + at("kafka") + "\";"
	client := func(prefix string) string {
		return prefix + "security.protocol=SASL_SSL\n" + prefix + "sasl.mechanism=SCRAM-SHA-512\n" + prefix + "sasl.jaas.config=" + jaas + "\n"
	}
	const history = "schema.history.internal."
	cfg, err := load(t, workerText+client("")+client("producer."), connectorJSON("database.password="+at("mysql"),
		history+"kafka.topic=h", history+"kafka.bootstrap.servers=h:1",
		history+"producer.security.protocol=SASL_SSL", history+"producer.sasl.mechanism=SCRAM-SHA-512", history+"producer.sasl.jaas.config="+jaas,
		history+"consumer.security.protocol=SASL_SSL", history+"consumer.sasl.mechanism=SCRAM-SHA-512", history+"consumer.sasl.jaas.config="+jaas))
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Connectors[0]
	if c.Password.Reveal() != "old-mysql" || c.Producer["sasl.jaas.config"] != module+"old-kafka\";" {
		t.Fatalf("%q, %q", c.Password.Reveal(), c.Producer["sasl.jaas.config"])
	}
	put("mysql", "new-mysql")
	put("kafka", "new-kafka")
	if got, err := c.ReadPassword(); err != nil || got != "new-mysql" {
		t.Errorf("%q, %v", got, err)
	}
	for name, reread := range map[string]func() (map[string]string, error){
		"worker": cfg.Worker.ClientReread, "producer": c.ProducerReread, "history's producer": c.History.ProducerReread, "history's consumer": c.History.ConsumerReread,
	} {
		if reread == nil {
			t.Errorf("%s is not read again", name)
			continue
		}
		got, err := reread()
		if err != nil || got["sasl.jaas.config"] != module+"new-kafka\";" || got["bootstrap.servers"] == "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := os.Remove(filepath.Join(folder, "kafka")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ProducerReread(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	plain, err := load(t, workerText, connectorJSON())
	if err != nil {
		t.Fatal(err)
	}
	if c := plain.Connectors[0]; c.ReadPassword != nil || c.ProducerReread != nil || plain.Worker.ClientReread != nil {
		t.Error("what no provider has is read again")
	}
}

// FuzzReferences holds that no value makes a panic, and that a value without references stays as it is.
func FuzzReferences(f *testing.F) {
	for _, text := range []string{"", "${", "${env:A}", "${env:A:B}", "${:}", "${dir::}", "${file:/etc/passwd:root}", "$${env:A}", "${env:${env:A}}"} {
		f.Add(text)
	}
	p := newProviders(&file{}, nil)
	p.env = func(string) (string, bool) { return "v", true }
	f.Fuzz(func(t *testing.T, text string) {
		got, err := p.resolve(text)
		if !p.refers(text) && (err != nil || got != text) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}
