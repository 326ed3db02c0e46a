package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ParseURL reads mysql://user[:password]@host[:port]/[database][?key=value&…], or mariadb://… for such a server, for printing a
// server's events. Keys:
//
//	tables     patterns separated by commas: of table names, or of db.table when the URL names no database
//	ssl        database.ssl.mode
//	prefix     topic.prefix; mysql when it is not given
//	server_id  database.server.id; a random one when it is not given
//
// and every property of a connector by its own name. env gives environment variables: without a password in the URL it
// is taken from TIDEMARK_PASSWORD or MYSQL_PWD. No error holds the password.
func ParseURL(raw string, env func(string) string) (*Connector, []Warning, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, nil, badURL("cannot be read; it must look like mysql://user:password@host:3306/database, and letters such as @ : / ? # %% in a user or password must be written as %%40 %%3A %%2F %%3F %%23 %%25")
	}
	switch {
	case u.Scheme != "mysql" && u.Scheme != "mariadb":
		return nil, nil, badURL("must begin with mysql:// or mariadb://")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, nil, badURL("names no host")
	case u.User.Username() == "":
		return nil, nil, badURL("names no user")
	case u.Fragment != "":
		return nil, nil, badURL("has a # part, which means nothing; in a password it must be written as %%23")
	}
	f := &file{value: map[string]string{}}
	set := func(key, value string) { f.set(key, value) }
	set("connector.class", ClassOf(u.Scheme == "mariadb"))
	set("database.hostname", u.Hostname())
	if p := u.Port(); p != "" {
		set("database.port", p)
	}
	set("database.user", u.User.Username())
	password, inURL := u.User.Password()
	if !inURL {
		if password = env("TIDEMARK_PASSWORD"); password == "" {
			password = env("MYSQL_PWD")
		}
	}
	set("database.password", password)

	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, badURL("has a part after the question mark that cannot be read")
	}
	take := func(name, fallback string) string {
		v := query[name]
		delete(query, name)
		if len(v) == 0 {
			return fallback
		}
		return strings.Join(v, ",")
	}
	tables := take("tables", "")
	set("topic.prefix", take("prefix", "mysql"))
	set("database.server.id", take("server_id", strconv.FormatUint(uint64(randomServerID()), 10)))
	set("database.ssl.mode", take("ssl", "preferred"))
	set("snapshot.mode", "no_data")
	set("include.schema.changes", "false")

	database := strings.TrimPrefix(u.Path, "/")
	if strings.Contains(database, "/") {
		return nil, nil, badURL("has more than a database after the host")
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(database), ",", `\,`)
	if database != "" {
		set("database.include.list", quoted)
	}
	if tables != "" {
		parts, err := splitPatterns(tables)
		if err != nil {
			return nil, nil, badURL("tables: %v", err)
		}
		for i, p := range parts {
			p = strings.ReplaceAll(p, ",", `\,`)
			if database != "" {
				p = quoted + `\.(?:` + p + `)`
			} else if !strings.Contains(p, ".") {
				return nil, nil, badURL("tables: %q names no database; write /database before the question mark or database.table", p)
			}
			parts[i] = p
		}
		set("table.include.list", strings.Join(parts, ","))
	}
	known := tableOf(InConnector)
	for _, k := range slices.Sorted(maps.Keys(query)) {
		if known.find(k) == nil {
			text := fmt.Sprintf("%s is unknown; known are tables, ssl, prefix, server_id and the properties of a connector", k)
			if near := known.nearest(k); near != "" {
				text += ", as " + near
			}
			return nil, nil, badURL("%s", text)
		}
		f.value[k] = strings.Join(query[k], ",")
		if !slices.Contains(f.keys, k) {
			f.keys = append(f.keys, k)
		}
	}
	return tail(f, Options{})
}

func badURL(format string, args ...any) error {
	return &KeyError{Key: "URL", Text: fmt.Sprintf(format, args...)}
}
