package backing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tine/mapstate"
)

// layoutVersion is the version of the key layout in doc.go.
const layoutVersion = 2

// The catalog's keys, under id 0.
const (
	catalogID     = 0
	catalogFormat = "\x00\x00\x00\x00f"
	catalogNextID = "\x00\x00\x00\x00n"
	catalogStates = "\x00\x00\x00\x00s" // and the name
	idBytes       = 4
)

// CatalogEntry is a state in the catalog. What Spec means is the creator's affair.
type CatalogEntry struct {
	Name string
	Spec []byte
}

// States returns the catalog, ordered by name. The caller owns it.
func (d *Database) States() ([]CatalogEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.shutDown()
	}
	entries := make([]CatalogEntry, 0, len(d.states))
	for _, p := range d.states {
		entries = append(entries, CatalogEntry{Name: p.name, Spec: slices.Clone(p.spec)})
	}
	slices.SortFunc(entries, func(a, b CatalogEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// State returns the state of that name, the same Pebble each time, or
// mapstate.ErrUnknownState.
func (d *Database) State(name string) (*Pebble, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookUp(name)
}

// Create makes an empty state; it is on disk when Create returns. A name that is
// taken is mapstate.ErrStateExists.
func (d *Database) Create(name string, spec []byte) (*Pebble, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.shutDown()
	}
	if _, taken := d.states[name]; taken {
		return nil, fmt.Errorf("create state %q: %w", name, mapstate.ErrStateExists)
	}
	if d.nextID == math.MaxUint32 {
		return nil, fmt.Errorf("create state %q: %w: all %d state ids are used up", name, mapstate.ErrTooLarge, uint32(math.MaxUint32))
	}
	p := newPebble(d, name, d.nextID, slices.Clone(spec))
	b := d.engine.NewBatch()
	err := errors.Join(
		b.Set([]byte(catalogStates+name), append(binary.BigEndian.AppendUint32(nil, p.id), spec...), nil),
		b.Set([]byte(catalogNextID), binary.BigEndian.AppendUint32(nil, d.nextID+1), nil),
	)
	if err != nil {
		return nil, errors.Join(classify(fmt.Sprintf("create state %q", name), err), b.Close())
	}
	d.nextID++ // also where the write fails: it may be in the log
	if err := d.applySynced(b); err != nil {
		return nil, fmt.Errorf("create state %q: %w", name, err)
	}
	d.states[p.name] = p
	return p, nil
}

// Delete removes a state with everything in it; it is gone from disk when Delete
// returns. Operations under way are waited for, scans cut short, while other states
// can be used, made and deleted; later ones on the state's Pebble are
// mapstate.ErrUnknownState, as is a name that is not there.
func (d *Database) Delete(name string) error {
	p, err := d.State(name)
	if err != nil {
		return err
	}
	p.gate.close(fmt.Errorf("state %q is deleted: %w", name, mapstate.ErrUnknownState))
	d.mu.Lock()
	defer d.mu.Unlock()
	current, err := d.lookUp(name)
	if err != nil {
		return err
	}
	if current != p {
		return fmt.Errorf("state %q: deleted by another call: %w", name, mapstate.ErrUnknownState)
	}
	if err := d.erase(p); err != nil {
		d.states[name] = newPebble(d, p.name, p.id, p.spec) // it is still there for readers
		return fmt.Errorf("delete state %q: %w", name, err)
	}
	delete(d.states, name)
	return nil
}

// erase removes a state from disk, with its name.
func (d *Database) erase(p *Pebble) error {
	b := d.engine.NewBatch()
	err := errors.Join(
		b.Delete([]byte(catalogStates+p.name), nil),
		b.DeleteRange(binary.BigEndian.AppendUint32(nil, p.id), binary.BigEndian.AppendUint32(nil, p.id+1), nil),
	)
	if err != nil {
		return errors.Join(classify("write", err), b.Close())
	}
	return d.applySynced(b)
}

// lookUp is State for a caller that holds mu.
func (d *Database) lookUp(name string) (*Pebble, error) {
	if d.closed {
		return nil, d.shutDown()
	}
	p, ok := d.states[name]
	if !ok {
		return nil, fmt.Errorf("state %q: %w", name, mapstate.ErrUnknownState)
	}
	return p, nil
}

func (d *Database) shutDown() error {
	return fmt.Errorf("database %s: %w", d.dir, mapstate.ErrShuttingDown)
}

// loadCatalog reads the catalog, or begins one in an empty database.
func (d *Database) loadCatalog() error {
	d.states, d.nextID = make(map[string]*Pebble), 1
	it, err := d.engine.NewIter(&pebble.IterOptions{})
	if err != nil {
		return classify("read the catalog", err)
	}
	err = d.readCatalog(it)
	if closeErr := it.Close(); closeErr != nil {
		err = errors.Join(err, classify("read the catalog", closeErr))
	}
	if err != nil || d.nextID > 1 {
		return err
	}
	// Empty, or without a state yet: writing the version again is harmless.
	b := d.engine.NewBatch()
	if err := b.Set([]byte(catalogFormat), binary.BigEndian.AppendUint32(nil, layoutVersion), nil); err != nil {
		return errors.Join(classify("begin the catalog", err), b.Close())
	}
	return d.applySynced(b)
}

// readCatalog reads the catalog from the start of it.
func (d *Database) readCatalog(it *pebble.Iterator) error {
	if !it.First() {
		return nil
	}
	version, err := catalogNumber(it, catalogFormat)
	if err != nil {
		return err
	}
	if version != layoutVersion {
		return fmt.Errorf("%w: the data has layout version %d, this program reads version %d; use the program that wrote it, or a newer one",
			mapstate.ErrUnsupported, version, layoutVersion)
	}
	if !it.Next() {
		return nil // a version and no state ever
	}
	if d.nextID, err = catalogNumber(it, catalogNextID); err != nil {
		return err
	}
	for it.Next() && bytes.HasPrefix(it.Key(), []byte(catalogStates)) {
		name := string(it.Key()[len(catalogStates):])
		value, err := it.ValueAndErr()
		if err != nil {
			return classify("read the catalog", err)
		}
		if len(value) < idBytes {
			return fmt.Errorf("%w: the catalog entry of state %q is cut short; restore the directory from a copy", mapstate.ErrCorrupt, name)
		}
		id := binary.BigEndian.Uint32(value)
		if id == catalogID || id >= d.nextID {
			return fmt.Errorf("%w: the catalog gives state %q the id %d, and %d as the next free one; restore the directory from a copy", mapstate.ErrCorrupt, name, id, d.nextID)
		}
		d.states[name] = newPebble(d, name, id, slices.Clone(value[idBytes:]))
	}
	return nil
}

// catalogNumber returns the number that it stands on, which must be that of key.
func catalogNumber(it *pebble.Iterator, key string) (uint32, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return 0, classify("read the catalog", err)
	}
	if string(it.Key()) != key || len(value) != idBytes {
		return 0, fmt.Errorf("%w: the catalog has %q where %q belongs; the directory is damaged, or another program's: restore it from a copy, or choose another one",
			mapstate.ErrCorrupt, it.Key(), key)
	}
	return binary.BigEndian.Uint32(value), nil
}
