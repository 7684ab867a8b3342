package program

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// A Table is figures under each other: names and values, both to the right.
type Table struct{ w *tabwriter.Writer }

// NewTable returns a table that Flush writes to w.
func NewTable(w io.Writer) *Table {
	return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

// Row adds a row.
func (t *Table) Row(name, value string) { fmt.Fprintf(t.w, "%s\t%s\t\n", name, value) }

// Count adds a row with a number.
func (t *Table) Count(name string, n int64) { t.Row(name, Grouped(n)) }

// Seconds adds a row with a number of seconds.
func (t *Table) Seconds(name string, s float64) { t.Row(name, strconv.FormatFloat(s, 'f', 3, 64)) }

// Flush writes the table. A standard output that is lost tells nobody anything, so
// there is no error.
func (t *Table) Flush() { _ = t.w.Flush() }
