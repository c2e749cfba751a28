package workload

import (
	"fmt"
	"slices"
	"strings"
)

const (
	ycsbKind    = "user"
	ycsbFields  = 10
	ycsbRecords = 1000 // recordcount of YCSB's own workload files
	ycsbBytes   = 100  // fieldlength
)

// YCSB returns the spec of a core workload of YCSB, a to f but e, as its Redis
// binding sends them: a record is a hash of ten fields of 100 bytes, HGETALL
// reads all of them, HMSET writes one (update) or all (insert). What differs:
//   - an update writes the first field, not one at random;
//   - the index of keys, a sorted set that only the scan of workload e reads,
//     is not kept: an insert is one request, not two;
//   - a read-modify-write (f) is its two requests, counted apart and of keys
//     of their own;
//   - the zipfian distribution is that of the records there are. YCSB's is that
//     of 10^10 of them, hashed onto those there are, which is less skewed: with
//     1,000 records its most frequent gets 4 % of the requests, ours 13 %.
//
// See https://github.com/brianfrankcooper/YCSB, workloads/ and redis/.
func YCSB(name string) (Spec, error) {
	read := Command{Name: "READ", Args: []string{"HGETALL", keyArg}, Kind: ycsbKind,
		Reply: fmt.Sprintf("*%d\r\n%s", 2*ycsbFields, strings.Repeat("$6\r\nfield0\r\n$100\r\n"+strings.Repeat("x", ycsbBytes)+"\r\n", ycsbFields))}
	update := Command{Name: "UPDATE", Args: []string{"HMSET", keyArg, "field0", dataArg}, Kind: ycsbKind, Reply: "+OK\r\n"}
	record := []string{"HMSET", keyArg}
	for i := range ycsbFields {
		record = append(record, fmt.Sprintf("field%d", i), dataArg)
	}
	insert := Command{Name: "INSERT", Args: record, Kind: ycsbKind, Insert: true, Reply: "+OK\r\n"}
	share := func(c Command, weight float64) Command { c.Weight = weight; return c }

	s := Spec{
		Name:   "YCSB-" + strings.ToUpper(name),
		Keys:   Keys{Space: ycsbRecords, Dist: Zipfian, Exponent: zipfExponent},
		Values: Values{Sizes: []Size{{Min: ycsbBytes, Max: ycsbBytes}}},
		Fill:   []Command{{Name: "INSERT", Args: slices.Clone(record), Kind: ycsbKind}},
	}
	switch strings.ToLower(name) {
	case "a":
		s.Commands = []Command{share(read, 50), share(update, 50)}
	case "b":
		s.Commands = []Command{share(read, 95), share(update, 5)}
	case "c":
		s.Commands = []Command{read}
	case "d":
		s.Keys.Dist = Latest
		s.Commands = []Command{share(read, 95), share(insert, 5)}
	case "e":
		return Spec{}, fmt.Errorf("YCSB workload e scans ranges of keys, for which its Redis binding reads an index and then each record: many requests that are no single operation; sweep a range read instead, as in -- ZRANGEBYSCORE __key__ 0 100")
	case "f":
		// Half the operations read, half read and then write.
		s.Commands = []Command{share(read, 100), share(update, 50)}
	default:
		return Spec{}, fmt.Errorf("unknown YCSB workload %q; want a, b, c, d or f", name)
	}
	return s, nil
}
