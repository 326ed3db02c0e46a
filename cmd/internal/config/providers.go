package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const providerPackage = "org.apache.kafka.common.config.provider."

// providerReference is Kafka's own pattern for ${provider:path:key}.
var providerReference = regexp.MustCompile(`\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`)

// providers give values that stand elsewhere: Kafka's EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider, by the
// names that the worker gives them in config.providers. Those of the names env, file and dir are there without that.
type providers struct {
	named map[string]*provider
	env   func(name string) (string, bool)
}

type provider struct {
	class   string         // without its package
	allowed []string       // param.allowed.paths; nil: any
	names   *regexp.Regexp // param.allowlist.pattern of the environment; nil: any
}

// newProviders reads config.providers of the worker's file; fail is told its faults.
func newProviders(worker *file, fail func(key, format string, args ...any)) *providers {
	p := &providers{env: os.LookupEnv, named: map[string]*provider{
		"env": {class: "EnvVarConfigProvider"}, "file": {class: "FileConfigProvider"}, "dir": {class: "DirectoryConfigProvider"},
	}}
	for _, name := range items(worker.value["config.providers"]) {
		base := "config.providers." + name + "."
		class := strings.TrimSpace(worker.value[base+"class"])
		if class == "" {
			fail(base+"class", "missing beside config.providers=%s; it is %sEnvVarConfigProvider, FileConfigProvider or DirectoryConfigProvider", name, providerPackage)
			p.named[name] = &provider{}
			continue
		}
		one := &provider{class: strings.TrimPrefix(class, providerPackage)}
		for _, path := range items(worker.value[base+"param.allowed.paths"]) {
			if !filepath.IsAbs(path) {
				fail(base+"param.allowed.paths", "%q is not allowed; its items must be absolute paths", path)
			}
			one.allowed = append(one.allowed, filepath.Clean(path))
		}
		if text := worker.value[base+"param.allowlist.pattern"]; text != "" && one.class == "EnvVarConfigProvider" {
			re, err := compileJavaCase(text)
			if err != nil {
				fail(base+"param.allowlist.pattern", "pattern %q: %v", text, err)
			}
			one.names = re
		}
		p.named[name] = one
	}
	return p
}

// refers says whether a value asks a provider for something.
func (p *providers) refers(value string) bool {
	return slices.ContainsFunc(providerReference.FindAllStringSubmatch(value, -1), func(m []string) bool { return p.named[m[1]] != nil })
}

// resolve puts what providers give into a value, as Kafka does it: what names no provider stays as it is, and what they give is
// not looked at again. It reads files and the environment. The error names the reference, never a value.
func (p *providers) resolve(value string) (string, error) {
	var errs []error
	out := providerReference.ReplaceAllStringFunc(value, func(reference string) string {
		m := providerReference.FindStringSubmatch(reference)
		one := p.named[m[1]]
		if one == nil {
			return reference
		}
		text, err := p.get(one, m[3], m[4])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", reference, err))
		}
		return text
	})
	return out, errors.Join(errs...)
}

func (p *providers) get(one *provider, path, key string) (string, error) {
	switch one.class {
	case "EnvVarConfigProvider":
		switch value, ok := p.env(key); {
		case path != "":
			return "", errors.New("the environment has no paths; write ${env:NAME}")
		case one.names != nil && !one.names.MatchString(key):
			return "", errors.New("param.allowlist.pattern does not allow this name")
		case !ok:
			return "", fmt.Errorf("the environment has no %s", key)
		default:
			return value, nil
		}
	case "FileConfigProvider":
		text, err := one.read(path)
		if err != nil {
			return "", err
		}
		f := &file{value: map[string]string{}}
		if err := f.parseProperties(text); err != nil {
			return "", fmt.Errorf("%s %w", path, err)
		}
		value, ok := f.value[key]
		if !ok {
			return "", fmt.Errorf("%s has no key %s", path, key)
		}
		return value, nil
	case "DirectoryConfigProvider":
		if key == "" || key != filepath.Base(key) || key == "." || key == ".." {
			return "", errors.New("what follows the path must be the name of a file in it; write ${dir:/folder:name}")
		}
		text, err := one.read(filepath.Join(path, key))
		// A line's end behind it is the editor's. Kafka leaves it, and no secret ends in one.
		return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
	}
	if one.class == "" {
		return "", errors.New("its class is missing")
	}
	return "", fmt.Errorf("its class %s cannot be loaded here; there are %sEnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider", one.class, providerPackage)
}

// read reads a file that is allowed, by the path that is asked for and by that which symbolic links lead to.
func (one *provider) read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("its path must be absolute")
	}
	path = filepath.Clean(path)
	if one.allowed != nil {
		if !slices.ContainsFunc(one.allowed, func(root string) bool { return within(root, path) }) {
			return nil, errors.New("param.allowed.paths does not allow this path")
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, pathError(err)
		}
		if !slices.ContainsFunc(one.allowed, func(root string) bool {
			realRoot, err := filepath.EvalSymlinks(root)
			return err == nil && within(realRoot, real)
		}) {
			return nil, errors.New("param.allowed.paths does not allow where this path leads to")
		}
	}
	text, err := readBounded(path)
	return text, pathError(err)
}

func within(root, path string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// pathError leaves the path out, which stands in front of it.
func pathError(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// reread gives a value with what the providers give now; nil for one that asks none.
func (c *checked) reread(key string) func() (string, error) {
	raw, ok := c.raw[key]
	if !ok {
		return nil
	}
	return func() (string, error) { return c.providers.resolve(raw) }
}

// rereads is reread for the settings of a Kafka client; nil when none of them asks a provider.
func rereads(settings map[string]string, from origin) func() (map[string]string, error) {
	again := map[string]func() (string, error){}
	for name := range settings {
		if c, key := from(name); c != nil {
			if f := c.reread(key); f != nil {
				again[name] = f
			}
		}
	}
	if len(again) == 0 {
		return nil
	}
	return func() (map[string]string, error) {
		out := make(map[string]string, len(settings))
		for name, value := range settings {
			out[name] = value
			if f := again[name]; f != nil {
				var err error
				if out[name], err = f(); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
}
