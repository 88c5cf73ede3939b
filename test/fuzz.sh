#!/bin/sh
# Runs every fuzz target of the module for a time: test/fuzz.sh [TIME]
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	package=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "fuzz $package $target $time"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2
	done
done
