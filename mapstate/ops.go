package mapstate

import (
	"fmt"
	"strings"
)

// OpInfo describes a named update function.
type OpInfo struct {
	Name string
	Op   Op
	// ArgOptional says that Op takes no value for its argument, and what that means
	// is its own. Every other Op refuses it with ErrUpdaterType.
	ArgOptional bool
}

// namedOps are the named update functions. A stored null counts as no value. They are
// pure and never panic, whatever is stored. Their errors are ErrUpdaterType,
// ErrUpdaterOverflow, ErrTooLarge, and ErrCorrupt for stored text that is not
// canonical JSON.
//
// All but set, append, concat and merge combine: updating with a, then with b,
// leaves what updating with the combination of a and b does (floats up to
// rounding).
var namedOps = [...]OpInfo{
	{Name: "append", Op: opAppend},
	{Name: "avg", Op: opAvg},
	{Name: "concat", Op: opConcat},
	{Name: "count", Op: opCount, ArgOptional: true},
	{Name: "first", Op: opFirst},
	{Name: "max", Op: opMax},
	{Name: "merge", Op: opMerge},
	{Name: "min", Op: opMin},
	{Name: "set", Op: opSet},
	{Name: "sum", Op: opSum},
	{Name: "union", Op: opUnion},
}

// LookupOp returns the update function of a name, or ErrUnknownUpdater.
func LookupOp(name string) (OpInfo, error) {
	for i := range namedOps {
		if namedOps[i].Name == name {
			return namedOps[i], nil
		}
	}
	names := make([]string, len(namedOps))
	for i := range namedOps {
		names[i] = namedOps[i].Name
	}
	return OpInfo{}, fmt.Errorf("%w: %q, known are %s", ErrUnknownUpdater, name, strings.Join(names, ", "))
}

// opSet replaces the value.
func opSet(_, arg Value) (Value, error) {
	if arg.IsNone() {
		return Value{}, argError("set", "a value", arg)
	}
	return arg, nil
}

// opFirst keeps the value that came first.
func opFirst(stored, arg Value) (Value, error) {
	if arg.IsNone() {
		return Value{}, argError("first", "a value", arg)
	}
	if isUnset(stored) {
		return arg, nil
	}
	return stored, nil
}

// opConcat joins strings.
func opConcat(stored, arg Value) (Value, error) {
	if arg.typ != TypeString {
		return Value{}, argError("concat", "a string", arg)
	}
	if isUnset(stored) {
		return arg, nil
	}
	if stored.typ != TypeString {
		return Value{}, storedError("concat", "a string", stored)
	}
	return sized("concat", String(stored.text+arg.text))
}

// isUnset reports whether an updater takes v for no value.
func isUnset(v Value) bool { return v.typ == TypeNone || v.typ == TypeNull }

// sized returns an op's result, or an error where it is larger than a value may be.
func sized(op string, v Value) (Value, error) {
	if err := v.CheckSize(); err != nil {
		return Value{}, fmt.Errorf("%s: %w", op, err)
	}
	return v, nil
}

func argError(op, want string, arg Value) error {
	return fmt.Errorf("%w: %s wants %s, the argument is %s", ErrUpdaterType, op, want, withArticle(arg.typ))
}

func storedError(op, want string, stored Value) error {
	return fmt.Errorf("%w: %s wants %s, the stored value is %s", ErrUpdaterType, op, want, withArticle(stored.typ))
}

func corruptError(op string, stored Value) error {
	return fmt.Errorf("%w: %s: the stored %s is not canonical JSON", ErrCorrupt, op, stored.typ)
}

// withArticle returns the name of a type as it reads after "is".
func withArticle(t Type) string {
	switch t {
	case TypeNone, TypeNull:
		return t.String()
	case TypeInt, TypeArray, TypeObject:
		return "an " + t.String()
	}
	return "a " + t.String()
}
