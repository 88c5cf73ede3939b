package api

import (
	"errors"
	"fmt"
	"slices"
)

// spec reads the body of the creation of a state.
func (d *decoder) spec() (StateSpec, error) {
	var spec StateSpec
	err := d.members([]string{"kind", "backing", "cache", "durability", "memcached"}, func(member string) error {
		switch member {
		case "kind":
			return d.stringInto(&spec.Kind)
		case "backing":
			return d.stringInto(&spec.Backing)
		case "durability":
			return d.stringInto(&spec.Durability)
		case "memcached":
			spec.Memcached = new(MemcachedSpec)
			return d.memcachedSpec(spec.Memcached)
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
	err := d.members([]string{"entries", "bytes"}, func(member string) (err error) {
		if member == "entries" {
			spec.Entries, err = d.int()
		} else {
			spec.Bytes, err = d.int()
		}
		return err
	})
	if err == nil && (spec.Entries < 0 || spec.Bytes < 0) {
		err = fmt.Errorf("%w: entries and bytes are 0 or more", ErrBadRequest)
	}
	return err
}

func (d *decoder) memcachedSpec(spec *MemcachedSpec) error {
	members := []string{"servers", "format", "keyPrefix", "globalKey", "timeoutMs", "connections", "acceptEviction"}
	return d.members(members, func(member string) (err error) {
		switch member {
		case "servers":
			err = d.array(member, func() error {
				spec.Servers = append(spec.Servers, "")
				return d.stringInto(&spec.Servers[len(spec.Servers)-1])
			})
		case "format":
			err = d.stringInto(&spec.Format)
		case "keyPrefix":
			err = d.stringInto(&spec.KeyPrefix)
		case "globalKey":
			err = d.stringInto(&spec.GlobalKey)
		case "timeoutMs":
			spec.TimeoutMS, err = d.int()
		case "connections":
			spec.Connections, err = d.int()
		default:
			spec.AcceptEviction, err = d.bool()
		}
		return err
	})
}

// members reads an object of members that may all be left out or null. An error names
// the member.
func (d *decoder) members(known []string, read func(member string) error) error {
	return d.object(func(name []byte) error {
		switch member := string(name); {
		case !slices.Contains(known, member):
			return unknownMember(name, known)
		case d.null():
			return nil
		default:
			return inMember(member, read(member))
		}
	})
}

// inMember names the member that an error is about, unless the error does.
func inMember(member string, err error) error {
	var at *FieldError
	if err == nil || errors.As(err, &at) && at.Member == member {
		return err
	}
	return &FieldError{Member: member, Index: -1, Err: err}
}

func (d *decoder) stringInto(s *string) error {
	text, err := d.string()
	*s = string(text)
	return err
}
