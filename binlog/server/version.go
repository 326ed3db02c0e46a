package server

import "strings"

// VersionNumber is the version as one number, 80036 for 8.0.36 and 101106 for 10.11.6; 0 if it cannot be told.
func (i *Info) VersionNumber() int {
	var parts [3]int
	text := strings.TrimPrefix(i.Version, "5.5.5-") // what old MariaDBs say first, for old clients
	part, digits := 0, 0
scan:
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9' && digits < 4:
			parts[part] = parts[part]*10 + int(r-'0')
			digits++
		case r == '.' && part < 2 && digits > 0:
			part, digits = part+1, 0
		default:
			break scan
		}
	}
	if part < 2 {
		return 0
	}
	return parts[0]*10000 + parts[1]*100 + parts[2]
}

// NamesColumns reports whether the binlog has the names of columns (binlog_row_metadata=FULL).
func (i *Info) NamesColumns() bool { return strings.EqualFold(i.RowMetadata, "FULL") }
