package api

import (
	"fmt"
	"slices"
)

// spec reads the body of the creation of a state.
func (d *decoder) spec() (StateSpec, error) {
	var spec StateSpec
	text := func(member string, into *string) error {
		s, err := d.string()
		if err != nil {
			return &FieldError{Member: member, Index: -1, Err: err}
		}
		*into = string(s)
		return nil
	}
	err := d.object(func(name []byte) error {
		switch member := string(name); {
		case !slices.Contains([]string{"kind", "backing", "cache", "durability"}, member):
			return unknownMember(name, []string{"kind", "backing", "cache", "durability"})
		case d.null():
			return nil
		case member == "kind":
			return text(member, &spec.Kind)
		case member == "backing":
			return text(member, &spec.Backing)
		case member == "durability":
			return text(member, &spec.Durability)
		}
		spec.Cache = new(CacheSpec)
		return d.cacheSpec(spec.Cache)
	})
	if err == nil {
		err = d.end()
	}
	if err == nil && spec.Kind == "" {
		err = missingMember("kind")
	}
	return spec, err
}

func (d *decoder) cacheSpec(spec *CacheSpec) error {
	err := d.object(func(name []byte) (err error) {
		switch member := string(name); {
		case member != "entries" && member != "bytes":
			return unknownMember(name, []string{"entries", "bytes"})
		case d.null():
			return nil
		case member == "entries":
			spec.Entries, err = d.int()
		default:
			spec.Bytes, err = d.int()
		}
		return err
	})
	if err == nil && (spec.Entries < 0 || spec.Bytes < 0) {
		err = fmt.Errorf("%w: entries and bytes are 0 or more", ErrBadRequest)
	}
	if err != nil {
		return &FieldError{Member: "cache", Index: -1, Err: err}
	}
	return nil
}
