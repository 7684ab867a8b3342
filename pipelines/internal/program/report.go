package program

import (
	"encoding/json"
	"strconv"
)

// WriteReport writes v to a file as JSON; where path is empty it does nothing.
func WriteReport(path string, v any) error {
	if path == "" {
		return nil
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteOutput(path, append(out, '\n'))
}

// Grouped writes n with a comma between thousands.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var out []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}
