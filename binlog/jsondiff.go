package binlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What a JSON diff does at its path (sql/json_diff.h of MySQL's sources).
const (
	jsonReplace = 0
	jsonInsert  = 1
	jsonRemove  = 2
)

var errJSONDiff = errors.New("the JSON diff is damaged")

// errJSONRejected is a diff that the server, too, would refuse to apply to this document.
var errJSONRejected = errors.New("the JSON diff does not fit the document of the before image")

// applyJSONDiff appends to dst what the diffs, as a PARTIAL_UPDATE_ROWS event has them for one column, make of a binary
// JSON document: operation (one byte), path and, unless it is removed, value (both with a length before them), one diff
// after the other. The rules are those of apply_json_diffs in sql/json_diff.cc: paths have no wildcards, nothing is
// wrapped into arrays, an insert into an array moves what is behind it, and a diff that does not fit is an error.
func applyJSONDiff(dst, doc, diffs []byte) ([]byte, error) {
	if len(doc) == 0 {
		return dst, errJSON
	}
	root, err := parseJSON(doc)
	if err != nil {
		return dst, err
	}
	for len(diffs) > 0 {
		op := diffs[0]
		path, rest, ok := lenencBytes(diffs[1:])
		if !ok || op > jsonRemove {
			return dst, errJSONDiff
		}
		var value []byte
		if op != jsonRemove {
			if value, rest, ok = lenencBytes(rest); !ok {
				return dst, errJSONDiff
			}
		}
		diffs = rest
		if err := root.apply(op, path, value); err != nil {
			return dst, fmt.Errorf("path %q: %w", path, err)
		}
	}
	return root.appendDocument(dst)
}

// apply changes the document by one diff.
func (n *jsonNode) apply(op byte, path, value []byte) error {
	legs, err := parseJSONPath(string(path))
	if err != nil {
		return err
	}
	if len(legs) == 0 { // the server logs the whole document then
		return errJSONRejected
	}
	var with *jsonNode
	if op != jsonRemove {
		if with, err = parseJSON(value); err != nil {
			return err
		}
	}
	last := legs[len(legs)-1]
	parent := n
	for _, leg := range legs[:len(legs)-1] {
		i, err := parent.find(leg)
		if err != nil {
			return err
		}
		if i < 0 {
			return errJSONRejected
		}
		parent = parent.members[i].value
	}
	i, err := parent.find(last)
	switch {
	case err != nil:
		return err
	case op == jsonReplace && i >= 0:
		parent.members[i].value = with
	case op == jsonRemove && i >= 0:
		parent.members = append(parent.members[:i], parent.members[i+1:]...)
	case op == jsonInsert && last.array && parent.isArray():
		parent.insert(last.index(len(parent.members), true), jsonMember{value: with})
	case op == jsonInsert && !last.array && parent.isObject() && i < 0:
		parent.insert(parent.place(last.name), jsonMember{key: last.name, value: with})
	default:
		return errJSONRejected
	}
	return nil
}

// jsonLeg is a step of a path: a member of an object or a cell of an array.
type jsonLeg struct {
	name    string
	array   bool
	fromEnd bool // [last-n]: n counts back from the last cell
	n       int
}

// index is the cell that the leg means in an array of a length. -1: there is none. With insert it is the place before
// which a new cell comes, and beyond an end that end.
func (l jsonLeg) index(length int, insert bool) int {
	i := l.n
	if l.fromEnd {
		i = length - 1 - l.n
	}
	switch {
	case insert:
		return min(max(i, 0), length)
	case i < 0 || i >= length:
		return -1
	}
	return i
}

// parseJSONPath reads a path as the server prints it: $, then .name, ."name" as a JSON string, [n], [last] or [last-n].
func parseJSONPath(text string) ([]jsonLeg, error) {
	bad := func() ([]jsonLeg, error) { return nil, errJSONDiff }
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return bad()
	}
	var legs []jsonLeg
	for rest != "" {
		if len(legs) == maxJSONDepth {
			return bad()
		}
		var leg jsonLeg
		switch {
		case strings.HasPrefix(rest, "["):
			inner, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return bad()
			}
			rest = after
			leg.array = true
			if back, ok := strings.CutPrefix(inner, "last"); ok {
				leg.fromEnd = true
				if back == "" {
					break
				}
				if inner, ok = strings.CutPrefix(back, "-"); !ok {
					return bad()
				}
			}
			n, err := strconv.ParseUint(inner, 10, 31)
			if err != nil {
				return bad()
			}
			leg.n = int(n)
		case strings.HasPrefix(rest, `."`):
			end := 2
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(rest) || json.Unmarshal([]byte(rest[1:end+1]), &leg.name) != nil {
				return bad()
			}
			rest = rest[end+1:]
		case strings.HasPrefix(rest, "."):
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return bad()
			}
			leg.name, rest = rest[1:1+end], rest[1+end:]
		default:
			return bad()
		}
		legs = append(legs, leg)
	}
	return legs, nil
}
