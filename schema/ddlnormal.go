package schema

import (
	"regexp"
	"slices"
	"strings"
)

// What Debezium does to a statement before it parses it (its DdlNormalizer), and so to the text that it writes into its
// records: strings in double quotes get single ones, and words that have become reserved get backticks where they stand
// as names.

const windowFunctions = `(CUME_DIST|DENSE_RANK|FIRST_VALUE|JSON_TABLE|LAG|LAST_VALUE|LEAD|NTH_VALUE|NTILE|PERCENT_RANK|RANK|ROW_NUMBER)`

var (
	windowAsTable = regexp.MustCompile(`(?i)\b(CREATE\s+TABLE|ALTER\s+TABLE|DROP\s+TABLE|FROM|JOIN|LEFT\s+JOIN|RIGHT\s+JOIN|` +
		`INNER\s+JOIN|OUTER\s+JOIN|INTO)\s+` + windowFunctions + `\b`)
	windowAsColumn = regexp.MustCompile(`(?i)\b` + windowFunctions + `\s+((?:VAR)?CHAR|INT|BIGINT|DECIMAL|NUMERIC|FLOAT|DOUBLE|` +
		`JSON|TEXT|BLOB|DATE|DATETIME|TIMESTAMP|TIME|YEAR|ENUM|SET|BINARY|VARBINARY|BIT|BOOL|BOOLEAN)\b`)
	windowAsLabel = regexp.MustCompile(`(?i)\b` + windowFunctions + `\s*:`)
	windowAny     = regexp.MustCompile(`(?i)\b` + windowFunctions + `\b`)
)

// normalized gives the text and the tokens of it. The tokens keep the values that they have in the original.
func normalized(l *lexer) (string, []token) {
	window := windowAny.MatchString(l.text)
	strange := func(t token) bool { return t.kind == tokenString && t.text[0] == '"' }
	if !window && !slices.ContainsFunc(l.tokens, strange) {
		return l.text, l.tokens
	}
	type stretch struct {
		start, end int
		text       string
	}
	var kept []stretch
	for _, c := range l.comments {
		kept = append(kept, stretch{c[0], c[1], l.text[c[0]:c[1]]})
	}
	for _, t := range l.tokens {
		switch {
		case strange(t):
			kept = append(kept, stretch{t.start, t.end, "'" + strings.ReplaceAll(t.text[1:len(t.text)-1], "'", "''") + "'"})
		case t.kind == tokenString, t.kind == tokenName:
			kept = append(kept, stretch{t.start, t.end, t.text})
		}
	}
	slices.SortFunc(kept, func(a, b stretch) int { return a.start - b.start })
	var out strings.Builder
	at := 0
	for _, k := range kept {
		out.WriteString(quoteWindows(l.text[at:k.start], window))
		out.WriteString(k.text)
		at = k.end
	}
	out.WriteString(quoteWindows(l.text[at:], window))
	again, err := cut(out.String(), l.syntax)
	if err != nil || len(again.tokens) != len(l.tokens) {
		return l.text, l.tokens
	}
	for i, t := range l.tokens {
		again.tokens[i].value = t.value
	}
	return again.text, again.tokens
}

func quoteWindows(text string, window bool) string {
	if !window {
		return text
	}
	text = windowAsTable.ReplaceAllString(text, "$1 `$2`")
	text = windowAsColumn.ReplaceAllString(text, "`$1` $2")
	return windowAsLabel.ReplaceAllString(text, "`$1`:")
}
