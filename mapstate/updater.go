package mapstate

// ValueUpdater computes a key's new value from the stored one. It must be a pure
// function of its argument: a replay calls it again, and so may a commit.
type ValueUpdater interface {
	// Update returns the new value for the stored one, which is no value
	// (Value.IsNone) where the key is absent. It must not return no value.
	// Errors are ErrUpdaterType, ErrUpdaterOverflow, ErrTooLarge and, for a damaged
	// stored value, ErrCorrupt.
	Update(stored Value) (Value, error)
}

// Op is a named update function of a stored value and an argument. Where its
// argument may be left out, arg is no value.
type Op func(stored, arg Value) (Value, error)

// Updater is a named operation bound to its argument. Only what has a name that
// LookupOp knows can be kept for a replay by another partition; see Record.Shares.
type Updater struct {
	Name string
	Op   Op
	Arg  Value
}

var _ ValueUpdater = (*Updater)(nil)

// Update implements ValueUpdater.
func (u *Updater) Update(stored Value) (Value, error) { return u.Op(stored, u.Arg) }
