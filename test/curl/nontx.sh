#!/bin/sh
# What sets the nontx kind apart: a txid is a label. test/curl/nontx.sh [URL]
. "$(dirname "$0")/lib.sh"
serve "$@"

section 'a batch that is sent again is applied again'
new nontx
for total in 1 2; do
	call POST multiUpdate '{"txid":2,"keys":["a"],"updater":"count","offsets":{"at":7}}'
	expect "200 {\"txid\":2,\"values\":[$total],\"applied\":1,\"replayed\":0,\"restored\":0}"
done

section 'a lower txid is not stale'
call POST multiUpdate '{"txid":1,"keys":["a"],"updater":"count"}'
expect '200 {"txid":1,"values":[3],"applied":1,"replayed":0,"restored":0}'

section 'what may be repeated without harm: max, set, union'
for _ in 1 2; do
	call POST multiUpdate '{"keys":["max","set","union"],"updaters":[{"op":"max","arg":9},{"op":"set","arg":"x"},{"op":"union","arg":["b","a"]}]}'
	expect '200 {"txid":null,"values":[9,"x",["a","b"]],"applied":3,"replayed":0,"restored":0}'
done

section 'an open batch is all or nothing all the same'
call POST beginCommit '{"txid":3}'
call POST multiRemove '{"txid":3,"keys":["a","max"]}'
get '["a"]' '[{"key":["a"],"found":true,"value":3}]'
call POST commit '{"txid":3}'
get '["a","max"]' '[{"key":["a"],"found":false,"value":null},{"key":["max"],"found":false,"value":null}]'
call GET entries
if [ -n "${MEMCACHED-}" ]; then
	expect_code 501 unsupported # memcached cannot list its keys
else
	expect '200 {"entries":[{"key":["set"],"value":"x"},{"key":["union"],"value":["a","b"]}]}'
fi
