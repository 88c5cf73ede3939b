#!/bin/sh
# Counts the words of a file of lines, in open batches, one request a line: resume_open.sh STATE_URL FILE [BYTES]
# It may be killed and started again as resume.sh may, and begins with the batch that was
# committed last. On an opaque state BYTES may be another number each time: what moves out of
# that batch is taken back. On a transactional one it must be the same.
set -eu
state=$1 file=$2 bytes=${3:-4096}
: <"$file" # it is there, or that is the end

send() { # send VERB BODY
	printf %s "$2" | curl -sS --fail --retry 60 --retry-connrefused -o /dev/null \
		-H 'Content-Type: application/json' --data @- "$state/$1"
}

resume() { # read where the last writer stands, 0 where nothing is known
	progress=$(curl -sS --fail --retry 60 --retry-connrefused "$state/progress")
	epoch=$(number epoch) txid=$(number txid) offset=$(number from)
}

number() { # number NAME: out of the progress
	printf '%s\n' "$progress" | sed -e "s/.*\"$1\":\([0-9]*\).*/\1/" -e t -e 's/.*/0/'
}

measure() { # print how many bytes the lines of the next batch have
	tail -c +$((offset + 1)) "$file" | LC_ALL=C awk -v bytes="$bytes" '
		{ size += length($0) + 1 }
		size >= bytes { exit }
		END { print size + 0 }'
}

keys() { # turn each line into the array of its words
	LC_ALL=C tr A-Z a-z | LC_ALL=C sed -e 's/[^a-z]\{1,\}/","/g' -e 's/^/["/' -e 's/$/"]/' \
		-e 's/"",//' -e 's/,""//' -e 's/\[""\]/[]/'
}

resume
epoch=$((epoch + 1))
send multiUpdate "{\"epoch\":$epoch,\"keys\":[],\"updater\":\"count\"}" # from here on nobody before us can write
resume
[ "$txid" -gt 0 ] || txid=1
while size=$(measure) && [ "$size" -gt 0 ]; do
	send beginCommit "{\"txid\":$txid,\"epoch\":$epoch}"
	tail -c +$((offset + 1)) "$file" | head -c "$size" | keys | while read -r words; do
		send multiUpdate "{\"txid\":$txid,\"epoch\":$epoch,\"keys\":$words,\"updater\":\"count\"}"
	done
	send commit "{\"txid\":$txid,\"epoch\":$epoch,\"offsets\":{\"file\":\"$file\",\"from\":$offset,\"offset\":$((offset + size))}}"
	txid=$((txid + 1)) offset=$((offset + size))
done
