#!/bin/sh
# The worked examples of the transactional kind: test/curl/transactional.sh [URL]
. "$(dirname "$0")/lib.sh"
serve "$@"

section 'man 3 @1, dog 4 @3, apple 10 @2; txid 3: man, man, dog is man 5 @3, dog 4 @3, apple 10 @2'
new transactional
call POST multiPut '{"txid":1,"keys":["man"],"values":[3]}'
expect '200 {"txid":1,"applied":1,"replayed":0,"restored":0}'
call POST multiPut '{"txid":2,"keys":["apple"],"values":[10]}'
expect '200 {"txid":2,"applied":1,"replayed":0,"restored":0}'
call POST multiPut '{"txid":3,"keys":["dog"],"values":[4]}'
expect '200 {"txid":3,"applied":1,"replayed":0,"restored":0}'
call POST multiUpdate '{"txid":3,"keys":["man","man","dog"],"updater":"count"}'
expect '200 {"txid":3,"values":[4,5,4],"applied":2,"replayed":1,"restored":0}'
get '["man","dog","apple"]' '[{"key":["man"],"found":true,"value":5,"txid":3},{"key":["dog"],"found":true,"value":4,"txid":3},{"key":["apple"],"found":true,"value":10,"txid":2}]'

section 'open 1: +1, +2; again open 1: +1, +2; open 2: +3, +1 is 3, still 3, 7'
new transactional
batch() { # batch TXID FIRST SECOND
	call POST beginCommit "{\"txid\":$1}"
	call POST multiUpdate "{\"txid\":$1,\"keys\":[\"a\"],\"updater\":\"sum\",\"args\":[$2]}"
	call POST multiUpdate "{\"txid\":$1,\"keys\":[\"a\"],\"updater\":\"sum\",\"args\":[$3]}"
	call POST commit "{\"txid\":$1}"
}
batch 1 1 2
expect '200 {"txid":1,"applied":2,"replayed":0,"restored":0}'
get '["a"]' '[{"key":["a"],"found":true,"value":3,"txid":1}]'
batch 1 1 2
expect '200 {"txid":1,"applied":0,"replayed":2,"restored":0}'
get '["a"]' '[{"key":["a"],"found":true,"value":3,"txid":1}]'
batch 2 3 1
expect '200 {"txid":2,"applied":2,"replayed":0,"restored":0}'
get '["a"]' '[{"key":["a"],"found":true,"value":7,"txid":2}]'

section 'a batch that is behind changes nothing'
call POST multiUpdate '{"txid":1,"keys":["fresh","a"],"updater":"count"}'
expect_code 409 stale_txid
get '["fresh","a"]' '[{"key":["fresh"],"found":false,"value":null},{"key":["a"],"found":true,"value":7,"txid":2}]'
