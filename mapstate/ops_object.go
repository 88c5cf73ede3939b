package mapstate

// opMerge applies an object as a merge patch (RFC 7396). The members of the
// stored object keep their order, new ones follow in the order of the patch.
// Where nothing is stored the argument is kept as it is.
func opMerge(stored, arg Value) (Value, error) {
	if arg.typ != TypeObject {
		return Value{}, argError("merge", "an object", arg)
	}
	if isUnset(stored) {
		return arg, nil
	}
	if stored.typ != TypeObject {
		return Value{}, storedError("merge", "an object", stored)
	}
	text := make([]byte, 0, len(stored.text)+len(arg.text))
	text, ok := appendMerged(text, stored.text, arg.text)
	if !ok {
		return Value{}, corruptError("merge", stored)
	}
	return sized("merge", Object(string(text)))
}

// appendMerged appends the object that patch makes of target, both the text of
// objects, or reports that one of them is not canonical.
func appendMerged(dst []byte, target, patch string) (_ []byte, ok bool) {
	old, ok := appendMembers(nil, target)
	if !ok {
		return dst, false
	}
	changes, ok := appendMembers(nil, patch)
	if !ok {
		return dst, false
	}
	left := make(map[string]string, len(changes)) // changes still to be made
	for _, m := range changes {
		left[m.name] = m.value
	}
	dst = append(dst, '{')
	for _, m := range old {
		change, changed := left[m.name]
		if !changed {
			dst = appendMember(dst, m.name, m.value)
			continue
		}
		delete(left, m.name)
		if dst, ok = appendChanged(dst, m.name, m.value, change); !ok {
			return dst, false
		}
	}
	for _, m := range changes {
		if _, isNew := left[m.name]; !isNew {
			continue
		}
		if dst, ok = appendChanged(dst, m.name, "{}", m.value); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// appendChanged appends a member whose value was old as a patch leaves it: not at all for null.
// It nests with appendMerged as deep as the patch does, which appendMembers bounds.
func appendChanged(dst []byte, name, old, change string) ([]byte, bool) {
	switch {
	case change == "null":
		return dst, true
	case change[0] != '{':
		return appendMember(dst, name, change), true
	case old[0] != '{':
		old = "{}"
	}
	return appendMerged(appendMember(dst, name, ""), old, change)
}

// appendMember appends a member to the text of an object that is still open.
func appendMember(dst []byte, name, value string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, name...)
	dst = append(dst, ':')
	return append(dst, value...)
}
