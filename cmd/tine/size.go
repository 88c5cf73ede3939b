package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// size is a flag that holds a number of bytes, as a plain number or in KiB, MiB
// or GiB.
type size struct{ bytes *int64 }

var _ pflag.Value = size{}

// sizeUnits are the units of a size, the largest first.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// Type implements pflag.Value.
func (s size) Type() string { return "size" }

// String implements pflag.Value, in the largest unit that divides the size.
func (s size) String() string {
	if s.bytes == nil { // pflag asks the zero size what it prints
		return ""
	}
	for _, unit := range sizeUnits {
		if *s.bytes != 0 && *s.bytes%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", *s.bytes/unit.bytes, unit.name)
		}
	}
	return strconv.FormatInt(*s.bytes, 10)
}

// Set implements pflag.Value.
func (s size) Set(text string) error {
	number, factor := text, int64(1)
	for _, unit := range sizeUnits {
		if head, ok := strings.CutSuffix(text, unit.name); ok {
			number, factor = head, unit.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return errors.New("want a number of bytes, or one with KiB, MiB or GiB")
	}
	*s.bytes = n * factor
	return nil
}
