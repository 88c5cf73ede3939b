package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tine/mapstate"
)

// envelope is the flags that say which batch an operation belongs to.
type envelope struct {
	cmd       *cobra.Command
	txid      int64
	partition string
	epoch     int64
	offsets   string
	whole     bool
}

// takeEnvelope adds the flags of the batch that an operation belongs to; also names
// those beyond --txid and --partition.
func takeEnvelope(cmd *cobra.Command, also ...string) *envelope {
	e := &envelope{cmd: cmd}
	flags := cmd.Flags()
	flags.Int64Var(&e.txid, "txid", 0, "transaction id of the batch; un-numbered without it")
	flags.StringVar(&e.partition, "partition", "", "partition of the writer")
	for _, name := range also {
		switch name {
		case "epoch":
			flags.Int64Var(&e.epoch, name, 0, "epoch of the writer")
		case "offsets":
			flags.StringVar(&e.offsets, name, "", "`JSON` that tells where to resume the source, kept with the commit")
		case "whole":
			flags.BoolVar(&e.whole, name, false, "this request is the whole batch of its partition")
		}
	}
	return e
}

// takeBatch is takeEnvelope for the verbs that cannot do without a txid.
func takeBatch(cmd *cobra.Command, also ...string) *envelope {
	e := takeEnvelope(cmd, also...)
	cmd.Flags().Lookup("txid").Usage = "transaction id of the batch, required"
	return e
}

// value returns the envelope that the flags give.
func (e *envelope) value() (mapstate.Envelope, error) {
	env := mapstate.Envelope{TxID: mapstate.TxID(e.txid), Partition: e.partition, Epoch: e.epoch, Whole: e.whole}
	if e.txid < 1 && e.given("txid") {
		return env, usageError{fmt.Errorf("--txid is %d, want 1 or more", e.txid)}
	}
	if e.epoch < 0 {
		return env, usageError{fmt.Errorf("--epoch is %d, want 0 or more", e.epoch)}
	}
	if e.given("offsets") {
		v, err := parseValue("--offsets", e.offsets)
		if err != nil {
			return env, err
		}
		env.Offsets = v.AppendJSON(nil)
	}
	return env, nil
}

// numbered is value for the verbs that cannot do without a txid.
func (e *envelope) numbered() (mapstate.Envelope, error) {
	if !e.given("txid") {
		return mapstate.Envelope{}, usageError{fmt.Errorf("missing --txid; want %s", usage(e.cmd))}
	}
	return e.value()
}

func (e *envelope) given(flag string) bool { return e.cmd.Flags().Changed(flag) }
