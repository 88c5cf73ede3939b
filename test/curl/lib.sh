# What the scripts of this directory share. A script begins with
#
#	. "$(dirname "$0")/lib.sh"
#	serve "$@"
#
# With a URL it talks to that server, else to one of its own: $TINE, or what the
# sources give, on a free port over a directory that is removed at the end. States
# have names of their own and are deleted at the end. With MEMCACHED=host:port they
# keep their entries there.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server='' # pid of a server of our own
states='' # that were created
count=0
trap 'finish $?' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() { # fail MESSAGE: say what is wrong and give up
	printf '%s: FAILED: %s\n' "$(basename "$0")" "$1" >&2
	exit 1
}

finish() { # finish CODE: delete what was created, stop what was started
	trap - EXIT
	set +e
	for s in $states; do
		curl -sS -o /dev/null -X DELETE "$url/v1/states/$s"
	done
	if [ -n "$server" ]; then
		kill "$server" && wait "$server" || {
			cat "$work/log" >&2
			printf 'the server did not stop in order\n' >&2
			set -- 1
		}
	fi
	rm -rf "$work"
	[ "$1" -ne 0 ] || printf '%s: passed\n' "$(basename "$0")"
	exit "$1"
}

serve() { # serve [URL]
	command -v curl >/dev/null || fail 'curl is not there; install it'
	if [ $# -gt 0 ]; then
		url=${1%/}
		return
	fi
	tine=${TINE:-}
	if [ -z "$tine" ]; then
		tine=$work/tine
		(cd "$root" && go build -o "$tine" ./cmd/tine) || fail 'go build ./cmd/tine'
	fi
	mkfifo "$work/out"
	"$tine" serve --listen 127.0.0.1:0 --data-dir "$work/data" >"$work/out" 2>"$work/log" &
	server=$!
	exec 3<"$work/out"
	read -r line <&3 || { server=''; cat "$work/log" >&2; fail "$tine serve did not start"; }
	url=${line##*listening on }
}

section() { printf '\n== %s\n' "$1"; }

new() { # new KIND: go on with a new state
	count=$((count + 1))
	state=curl-$$-$count
	set -- "$1" "{\"kind\":\"$1\"${MEMCACHED:+,\"backing\":\"memcached\",\"memcached\":{\"servers\":[\"$MEMCACHED\"]\}}}"
	status=$(curl -sS -o "$work/answer" -w '%{http_code}' -X PUT -H 'Content-Type: application/json' \
		-d "$2" "$url/v1/states/$state") || fail "no server at $url"
	[ "$status" = 201 ] || fail "create a state: $status $(cat "$work/answer")"
	states="$states $state"
	printf '> PUT /v1/states/%s %s\n< %s\n' "$state" "$2" "$status"
}

call() { # call METHOD VERB [BODY]: call the state, and print what was sent and what came
	printf '> %s …/%s %s\n' "$1" "$2" "${3:-}"
	if [ $# -gt 2 ]; then
		status=$(curl -sS -o "$work/answer" -w '%{http_code}' -X "$1" -H 'Content-Type: application/json' \
			-d "$3" "$url/v1/states/$state/$2") || fail "no server at $url"
	else
		status=$(curl -sS -o "$work/answer" -w '%{http_code}' -X "$1" "$url/v1/states/$state/$2") || fail "no server at $url"
	fi
	got="$status $(cat "$work/answer")"
	printf '< %s\n' "$got"
}

expect() { # expect 'STATUS BODY': of the last call
	[ "$got" = "$1" ] || fail "got  $got
                 want $1"
}

expect_code() { # expect_code STATUS CODE: the last call was refused with that code
	case $got in
	"$1 {"*"\"code\":\"$2\""*) ;;
	*) fail "want status $1 and code $2, got $got" ;;
	esac
}

get() { # get KEYS ENTRIES: read keys without a txid and expect these entries
	call POST multiGet "{\"keys\":$1,\"detail\":true}"
	expect "200 {\"entries\":$2}"
}
