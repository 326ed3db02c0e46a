package it

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reportedCase is trouble that users of change-data-capture tools have reported, and the tests that show that it is none here: in
// the form Test, or Test/name of a case in its file.
type reportedCase struct {
	trouble string
	held    []string
	reason  string // why none of them is held here
}

// reportedCases are the reports about changes of tables, about types and values, about the protocol of the binlog, and about
// snapshots and permissions.
var reportedCases = []reportedCase{
	// Changes of tables.
	{trouble: "old rows are decoded with the columns of now", held: []string{"TestLiveDDL/old rows keep the columns of their time", "TestI10_PlansOfVersions"}},
	{trouble: "AFTER names a column that the same ALTER renames", held: []string{"TestLiveDDL/AFTER names a column that the same ALTER renames"}},
	{trouble: "a rename that changes only letter case loses the column", held: []string{"TestLiveDDL/a rename that changes only letter case"}},
	{trouble: "only a part of a chain of renames is applied", held: []string{"TestLiveDDL/rename chains and a rename to another database", "TestI3_RenameOfThreeTables"}},
	{trouble: "the first rows of a new table are lost", held: []string{"TestLiveDDL/a table that is used as soon as it is made, and dropped"}},
	{trouble: "CREATE TABLE LIKE a table that is not captured", held: []string{"TestLiveDDL/CREATE TABLE LIKE a table that is not captured"}},
	{trouble: "DDL under ANSI_QUOTES", held: []string{"TestLiveDDL/a session with ANSI_QUOTES, and double quotes as strings without it", "TestGolden"}},
	{trouble: "words that are keywords only for the parser", held: []string{"TestLiveDDL/words that are keywords only for a parser"}},
	{trouble: "versioned comments carry syntax", held: []string{"TestLiveDDL/versioned comments carry syntax"}},
	{trouble: "an ALTER that is not in the binlog", held: []string{"TestLiveDDL/an ALTER with sql_log_bin off"}},
	{trouble: "an ALTER that is not in the binlog, with MINIMAL metadata", held: []string{"TestHiddenAlterWithMinimalMetadataIsFound"}},
	{trouble: "invisible columns, and the key that the server makes", held: []string{"TestLiveDDL/invisible columns and the generated invisible primary key"}},
	{trouble: "character sets changed by DDL", held: []string{"TestLiveDDL/character sets changed by DDL"}},
	{trouble: "one DROP of several tables", held: []string{"TestLiveDDL/DROP of several tables and one of them made anew"}},
	{trouble: "ALGORITHM and LOCK clauses", held: []string{"TestLiveDDL/ALGORITHM and LOCK clauses, repeated and without an equals sign"}},
	{trouble: "synonyms of types", held: []string{"TestLiveDDL/synonyms of types and words of sign"}},
	{trouble: "a new column writes no rows", held: []string{"TestLiveDDL/adding a column writes no rows"}},

	// Types and values. TestLiveTypes runs each with FULL and with MINIMAL metadata.
	{trouble: "unsigned integers with the top bit set", held: []string{"TestLiveTypes/unsigned integers with the top bit set"}},
	{trouble: "a SET with 64 members", held: []string{"TestLiveTypes/a SET with 64 members"}},
	{trouble: "labels with special characters", held: []string{"TestLiveTypes/labels of ENUM and SET with commas, quotes and backslashes"}},
	{trouble: "BINARY loses its zero tail", held: []string{"TestLiveTypes/BINARY keeps its zero tail, in keys too"}},
	{trouble: "other character sets", held: []string{"TestLiveTypes/text in all character sets"}},
	{trouble: "zero dates", held: []string{"TestLiveTypes/zero dates, nullable and not", "TestGolden"}},
	{trouble: "TIME beyond a day", held: []string{"TestLiveTypes/TIME beyond a day, negative, with fractions"}},
	{trouble: "years 0001 to 9999", held: []string{"TestLiveTypes/years 0001 to 9999", "TestLiveTypes/years 0001 to 0078"}},
	{trouble: "TIMESTAMP and DATETIME in time zones", held: []string{"TestLiveTypes/a TIMESTAMP is an instant, a DATETIME what the clock showed"}},
	{trouble: "extremes of DECIMAL", held: []string{"TestLiveTypes/DECIMAL with every digit"}},
	{trouble: "numbers and order of keys in JSON", held: []string{"TestLiveTypes/numbers and order of keys in JSON"}},
	{trouble: "opaque values in JSON", held: []string{"TestLiveTypes/values in JSON that JSON does not have"}},
	{trouble: "VECTOR", held: []string{"TestLiveTypes/VECTOR"}},
	{trouble: "order of composite keys, and prefix keys", held: []string{"TestLiveTypes/composite keys in the order of the key, with prefixes"}},
	{trouble: "more than eight nullable columns", held: []string{"TestLiveTypes/NULL in the first, ninth and thousandth column"}},
	{trouble: "text with NUL, four-byte characters and blanks", held: []string{"TestLiveTypes/text with NUL, blanks, four-byte characters and great length"}},
	{trouble: "an update to NULL", held: []string{"TestLiveTypes/an update to NULL and back, and one that changes nothing"}},

	// Restart, offsets, duplicates, loss.
	{trouble: "a cut inside a transaction", held: []string{"TestI1_I2_I5_I7_Chaos", "TestI4_I5_EveryOffset"}},
	{trouble: "an old reader goes on beside the new one", held: []string{"TestI5_ReconnectGoesThroughTheStoredOffset", "TestItHealsItself"}},
	{trouble: "a first start on a server with purged GTIDs", held: []string{"TestContinuity/an empty server, and a start on one with purged GTIDs"}},
	{trouble: "a binlog file number beyond 999999", held: []string{"TestContinuity/a file number beyond 999999"}},
	{trouble: "the same file name on another server", held: []string{"TestSameFileNameOtherServer", "TestContinuity/without GTIDs another server is refused"}},
	{trouble: "the binlog that is needed is gone", held: []string{"TestContinuity/what is needed is purged"}},
	{trouble: "a commit without a later event", held: []string{"TestContinuity/nothing is repeated after a quiet stop"}},
	{trouble: "GTIDs that a restored server gives twice", held: []string{"TestContinuity/GTIDs are given a second time"}},

	// The protocol of the binlog.
	{trouble: "checksums switched while streaming", held: []string{"TestLiveProtocol/checksums switched while streaming", "TestStreamChecksumChanges"}},
	{trouble: "compressed transactions", held: []string{"TestLiveProtocol/a compressed transaction between others", "TestGolden"}},
	{trouble: "ROWS_QUERY events", held: []string{"TestLiveProtocol/query texts belong to their own statement only"}},
	{trouble: "XA ROLLBACK after PREPARE", held: []string{"TestLiveProtocol/XA transactions appear when they are committed, and not when they are rolled back"}},
	{trouble: "GTIDs with tags", held: []string{"TestLiveProtocol/a GTID with a tag"}},
	{trouble: "anonymous GTIDs", held: []string{"TestI5_EveryRow", "TestGolden"}},
	{trouble: "events over 16 MiB", held: []string{"TestLiveProtocol/a_row_over_16_MiB"}},
	{trouble: "binlog_row_image=MINIMAL", held: []string{"TestLiveProtocol/a_session_with_MINIMAL_images", "TestLiveProtocol/TestRowImageOfTheServer", "TestGolden"}},
	{trouble: "sessions that log statements", held: []string{"TestLiveProtocol/a_session_that_logs_statements"}},
	{trouble: "a server killed with SIGKILL", held: []string{"TestLiveServerRestarts"}},
	{trouble: "cascades of foreign keys", held: []string{"TestLiveProtocol/cascades of foreign keys"}},
	{trouble: "cascades with --innodb-native-foreign-keys", reason: "the binlog holds only the row of the parent then; there is nothing to read"},
	{trouble: "REPLACE and ON DUPLICATE KEY", held: []string{"TestLiveProtocol/REPLACE and ON DUPLICATE KEY"}},
	{trouble: "savepoints", held: []string{"TestLiveProtocol/savepoints"}},
	{trouble: "temporary tables", held: []string{"TestLiveProtocol/temporary tables, also with the name of a captured one"}},
	{trouble: "table ids that are used again", held: []string{"TestLiveServerRestarts"}},
	{trouble: "binlog_row_metadata switched while streaming", held: []string{"TestLiveProtocol/binlog_row_metadata switched to MINIMAL and back"}},
	{trouble: "the time of an event and the source block", held: []string{"TestLiveProtocol/the time of an event is that of its commit", "TestGolden"}},

	// Snapshots and permissions.
	{trouble: "missing privileges are reported late", held: []string{"TestBadInput/missing replication grants", "TestBadInput/missing select grant"}},
	{trouble: "SHOW MASTER STATUS is gone", held: []string{"TestStatementsByVersion", "TestBadInput/binlog_off", "TestMariaDB"}},
	{trouble: "a hole or an overlap between snapshot and stream", reason: "this build takes no snapshot"},
	{trouble: "a crash right after the snapshot", reason: "this build takes no snapshot"},
	{trouble: "snapshot and stream write a value in two ways", reason: "this build takes no snapshot; TestLiveTypes holds the stream's way"},
	{trouble: "MyISAM in a snapshot", reason: "this build takes no snapshot"},
	{trouble: "a kill in the middle of the snapshot", reason: "this build takes no snapshot"},
	{trouble: "a replica without a binlog of its own", held: []string{"TestChecksAtTheStart/replica without its own log"}},
}

// TestReportedCasesAreHeld requires that each named test is there.
func TestReportedCasesAreHeld(t *testing.T) {
	files := testFiles(t)
	for _, c := range reportedCases {
		if (len(c.held) == 0) == (c.reason == "") {
			t.Errorf("%s: either tests hold it, or there is a reason why none does", c.trouble)
		}
		for _, name := range c.held {
			test, sub, _ := strings.Cut(name, "/")
			file, ok := files[test]
			if !ok {
				t.Errorf("%s: there is no test %s", c.trouble, test)
				continue
			}
			if sub != "" && !strings.Contains(file, `"`+sub+`"`) {
				t.Errorf("%s: the file of %s has no case %q", c.trouble, test, sub)
			}
		}
		if c.reason != "" {
			t.Logf("not held: %s (%s)", c.trouble, c.reason)
		}
	}
}

// TestFaultsAreHeld requires that each test that docs/faults.md names is there.
func TestFaultsAreHeld(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := testFiles(t)
	named := regexp.MustCompile("`(Test\\w+)").FindAllStringSubmatch(string(text), -1)
	for _, name := range named {
		if _, ok := files[name[1]]; !ok {
			t.Errorf("there is no test %s", name[1])
		}
	}
	if len(named) < 100 {
		t.Errorf("%d tests are named", len(named))
	}
}

// numbered are numbers in front of what a test shows.
var numbered = regexp.MustCompile(`^Test([A-Z]\d\d_)+`)

// testFiles are the texts of the files of all tests of the module, by the name of the test, with and without numbers.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(moduleRoot(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 1 {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				files[f.Name.Name] = string(text)
				files[numbered.ReplaceAllString(f.Name.Name, "Test")] = string(text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
