#!/bin/sh
# The worked examples of the opaque kind: test/curl/opaque.sh [URL]
. "$(dirname "$0")/lib.sh"
serve "$@"

add() { # add TXID KEY NUMBER
	call POST multiUpdate "{\"txid\":$1,\"keys\":[\"$2\"],\"updater\":\"sum\",\"args\":[$3]}"
}

holds() { # holds KEY VALUE PREV TXID
	get "[\"$1\"]" "[{\"key\":[\"$1\"],\"found\":true,\"value\":$2,\"prev\":$3,\"txid\":$4}]"
}

counted() { # counted FIRST SECOND TXID: a new state with FIRST, then SECOND more under TXID
	new opaque
	call POST multiPut "{\"txid\":1,\"keys\":[\"a\"],\"values\":[$1]}"
	add "$3" a "$2"
	holds a $(($1 + $2)) "$1" "$3"
}

section '4, prev 1, @2; txid 3: +2 is 6, prev 4, @3'
counted 1 3 2
add 3 a 2
expect '200 {"txid":3,"values":[6],"applied":1,"replayed":0,"restored":0}'
holds a 6 4 3

section '4, prev 1, @2; txid 2: +2 is 3, prev 1, @2'
counted 1 3 2
add 2 a 2
expect '200 {"txid":2,"values":[3],"applied":0,"replayed":1,"restored":0}'
holds a 3 1 2

section '5, prev 3, @3; txid 4: +3 is 8, prev 5, @4'
counted 3 2 3
add 4 a 3
expect '200 {"txid":4,"values":[8],"applied":1,"replayed":0,"restored":0}'
holds a 8 5 4

section '5, prev 3, @3; txid 3: +3 is 6, prev 3, @3'
counted 3 2 3
add 3 a 3
expect '200 {"txid":3,"values":[6],"applied":0,"replayed":1,"restored":0}'
holds a 6 3 3

section 'open 1: +1, read 1, +2, read 3; again open 1: read absent, +2; open 2: read 2, +3, +1 is 3, 2, 6'
new opaque
call POST beginCommit '{"txid":1}'
expect '200 {"txid":1,"partition":"","committed":0,"replay":false}'
add 1 a 1
call POST multiGet '{"txid":1,"keys":["a"]}'
expect '200 {"values":[1]}'
add 1 a 2
call POST multiGet '{"txid":1,"keys":["a"]}'
expect '200 {"values":[3]}'
call POST commit '{"txid":1}'
call POST multiGet '{"keys":["a"]}'
expect '200 {"values":[3]}'
call POST beginCommit '{"txid":1}'
expect '200 {"txid":1,"partition":"","committed":1,"replay":true}'
call POST multiGet '{"txid":1,"keys":["a"]}'
expect '200 {"values":[null]}'
add 1 a 2
call POST commit '{"txid":1}'
call POST multiGet '{"keys":["a"]}'
expect '200 {"values":[2]}'
call POST beginCommit '{"txid":2}'
call POST multiGet '{"txid":2,"keys":["a"]}'
expect '200 {"values":[2]}'
add 2 a 3
add 2 a 1
call POST commit '{"txid":2}'
holds a 6 2 2

section '10 @1; open 2: remove; again open 2: +1 is 11, prev 10, @2'
new opaque
call POST multiPut '{"txid":1,"keys":["a"],"values":[10]}'
call POST beginCommit '{"txid":2}'
call POST multiRemove '{"txid":2,"keys":["a"]}'
call POST commit '{"txid":2}'
call POST multiGet '{"keys":["a"]}'
expect '200 {"values":[null]}'
call POST beginCommit '{"txid":2}'
add 2 a 1
call POST commit '{"txid":2}'
holds a 11 10 2

section 'a 10 @4; whole 5: a +1, b +1; whole 5 again: a +3, c +1 is a 13, b absent, c 1; restored 1'
new opaque
call POST multiPut '{"txid":4,"keys":["a"],"values":[10]}'
call POST multiUpdate '{"txid":5,"whole":true,"keys":["a","b"],"updater":"sum","args":[1,1]}'
expect '200 {"txid":5,"values":[11,1],"applied":2,"replayed":0,"restored":0}'
call POST multiUpdate '{"txid":5,"whole":true,"keys":["a","c"],"updater":"sum","args":[3,1]}'
expect '200 {"txid":5,"values":[13,1],"applied":1,"replayed":1,"restored":1}'
call POST multiGet '{"keys":["a","b","c"]}'
expect '200 {"values":[13,null,1]}'
