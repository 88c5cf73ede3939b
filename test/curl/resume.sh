#!/bin/sh
# Counts the words of a file of lines, a few of them a batch: resume.sh STATE_URL FILE [BYTES]
# Kill it, or the server, at any moment and start it again: it goes on where the last
# committed batch ended.
set -eu
state=$1 file=$2 bytes=${3:-4096}
: <"$file" # it is there, or that is the end

send() { # send BODY: one batch, which is there when this returns
	printf %s "$1" | curl -sS --fail --retry 60 --retry-connrefused -o /dev/null \
		-H 'Content-Type: application/json' --data @- "$state/multiUpdate"
}

resume() { # read where the last writer stands, 0 where nothing is known
	progress=$(curl -sS --fail --retry 60 --retry-connrefused "$state/progress")
	epoch=$(number epoch) txid=$(number txid) offset=$(number offset)
}

number() { # number NAME: out of the progress
	printf '%s\n' "$progress" | sed -e "s/.*\"$1\":\([0-9]*\).*/\1/" -e t -e 's/.*/0/'
}

batch() { # print how many bytes the next lines have, and their words as JSON
	tail -c +$((offset + 1)) "$file" | LC_ALL=C awk -v bytes="$bytes" '
		{ size += length($0) + 1; $0 = tolower($0); gsub(/[^a-z]+/, " ") }
		{ for (i = 1; i <= NF; i++) keys = keys (keys ? "," : "") "\"" $i "\"" }
		size >= bytes { exit }
		END { if (size) print size, "[" keys "]" }'
}

resume
epoch=$((epoch + 1))
send "{\"epoch\":$epoch,\"keys\":[],\"updater\":\"count\"}" # from here on nobody before us can write
resume
while next=$(batch) && [ -n "$next" ]; do
	txid=$((txid + 1)) offset=$((offset + ${next%% *}))
	send "{\"txid\":$txid,\"epoch\":$epoch,\"whole\":true,\"offsets\":{\"file\":\"$file\",\"offset\":$offset},
		\"keys\":${next#* },\"updater\":\"count\",\"return\":\"none\"}"
done
