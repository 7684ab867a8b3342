#!/usr/bin/env bash
# A new user's walk: a clone, the quick start, a pipeline and a test of one's own, Google's
# emulator, a load through a relay with faults, dead letters and their replay, and a plot of
# counts. Each step is what the documents tell a reader to do, and fails where it does not
# come out as they say. It needs Go, git, bash, and for one step the Pub/Sub emulator.
#
#   integration/walk/walk.sh
#   integration/walk/walk.sh --commands
#
# The commands of the README's blocks of sh are executed as they stand there, on the branch
# that is checked out here and on ports that are free; --commands prints them and does
# nothing else.
#
# WALK_DIR=DIR keeps reports and plots in DIR, which must be empty or not exist; else
# everything is removed at the end. PUBSUBIO_REQUIRE_EMULATOR=1 has a missing emulator fail
# the walk.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly repository
readonly project=projects/walk

# block KIND FILE N prints the N-th block of a kind in a document.
block() {
	awk -v fence="\`\`\`$1" -v n="$3" '$0 == fence { i++; on = (i == n); next } /^```/ { on = 0 } on' "$2"
}

# The README's blocks of sh, by their number: each is told to a reader as one that is
# executed here.
readonly to_clone=1 to_begin=2 to_serve=3 to_run=4
from_readme() { block sh "$repository/README.md" "$1"; }

if [[ ${1:-} == --commands ]]; then
	for n in $to_clone $to_begin $to_serve $to_run; do from_readme "$n"; done
	exit
fi

if [[ -n ${WALK_DIR:-} ]]; then
	mkdir -p "$WALK_DIR"
	work=$(cd "$WALK_DIR" && pwd)
	[[ -z $(ls -A "$work") ]] || { echo "WALK_DIR is not empty"; exit 1; }
else
	work=$(mktemp -d)
fi
clone=$work/beam-pubsub-go bin=$work/bin out=$work/out
mkdir "$out"

# Background processes, each the leader of a group of its own: "go run" has children.
pids=()
clean_up() {
	local status=$? pid
	{ # The shell would tell of each that it was killed.
		for pid in "${pids[@]}"; do kill -KILL -- "-$pid" || true; done
		wait || true
	} 2>/dev/null
	if [[ -z ${WALK_DIR:-} ]]; then rm -rf "$work"; fi
	((status == 0)) || echo "THE WALK HAS FAILED at step ${step:-0}: $title"
}
trap clean_up EXIT

step=0 title=
step() {
	step=$((step + 1)) title=$1
	printf '\n==> %d. %s (%d s)\n' "$step" "$title" "$SECONDS"
}

fail() { echo "$*"; exit 1; }

# background LOG COMMAND... starts a command, whose output goes to $out/LOG; $! is its pid.
background() {
	local log=$1
	shift
	set -m
	"$@" >"$out/$log" 2>&1 </dev/null &
	set +m
	pids+=($!)
}

# await SECONDS WHAT COMMAND... returns once the command succeeds.
await() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		((SECONDS < until)) || fail "waited in vain for $what"
		sleep 0.2
	done
}

# http METHOD HOST:PORT PATH BODY prints the answer of a server in plaintext, which may
# leave the connection open after it.
http() {
	local method=$1 at=$2 path=$3 line length=
	exec 3<>"/dev/tcp/${at%:*}/${at#*:}" || return 1
	printf '%s %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' \
		"$method" "$path" "$at" "${#4}" "$4" >&3
	while read -r -t 30 line <&3 && line=${line%$'\r'} && [[ -n $line ]]; do
		if [[ ${line,,} == content-length:* ]]; then length=${line#*: }; fi
	done
	if [[ -n $length ]]; then head -c "$length" <&3; else cat <&3; fi
	exec 3>&-
}

says() { grep -q -- "$2" "$out/$1"; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# server LOG FLAG... starts the server of package pubsubtest and sets endpoint and counts.
server() {
	local log=$1
	shift
	background "$log" "$bin/pubsubtestd" --addr=127.0.0.1:0 --stats-addr=127.0.0.1:0 "$@"
	await 30 "pubsubtestd" says "$log" "listening on"
	endpoint=$(sed -n 's/^listening on //p' "$out/$log")
	counts=$(sed -n 's|^stats on http://||p' "$out/$log")
}

# published TOPIC prints how many messages the server has stored in a topic.
published() {
	http GET "$counts" / "" | tr ',{' '\n\n' | sed -n "s|^\"$project/topics/$1\":\([0-9]*\).*|\1|p"
}
has_published() { (($(published "$1") >= $2)); }

# free_port FROM prints the first port from there on that nothing listens on.
free_port() {
	local port=$1
	while listens "$port"; do port=$((port + 1)); done
	echo "$port"
}

# reports FILE TEXT... fails unless a report has each of the texts.
reports() {
	local file=$1 text
	shift
	for text in "$@"; do
		grep -q -- "$text" "$file" || { cat "$file"; fail "the report does not say $text"; }
	done
}

# A checkout that another user made has no readable VCS state.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

step "clone, from the README"
origin=$repository
if ! git -C "$origin" rev-parse HEAD >/dev/null 2>&1; then # an archive of the sources
	origin=$work/archive
	cp -r "$repository" "$origin"
	git -C "$origin" rev-parse HEAD >/dev/null 2>&1 || {
		git -C "$origin" init --quiet
		git -C "$origin" add --all
		git -C "$origin" -c user.name=walk -c user.email=walk@example.com commit --quiet --message=archive
	}
fi
# The address that the README has the reader clone leads here.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.$origin.insteadOf
export GIT_CONFIG_VALUE_0=https://github.com/beam-pubsub/beam-pubsub-go
cd "$work"
eval "$(from_readme $to_clone)"
[[ $PWD == "$clone" ]] || fail "the README leads to $PWD, not to the clone"
export GOBIN=$bin
go install ./pipelines/... ./pubsubio/pubsubtest/pubsubtestd

step "the quick start"
go run ./pipelines/relay --embedded | tee "$out/embedded"
says embedded "every message arrived and was acknowledged"

step "a pipeline of one's own, from the README"
eval "$(from_readme $to_begin)"
block go "$clone/README.md" 1 >main.go
port=$(free_port 8085)
stats_port=$(free_port $((port + 1)))
on_free_ports() { sed "s/127\.0\.0\.1:8085/127.0.0.1:$port/; s/127\.0\.0\.1:8086/127.0.0.1:$stats_port/"; }
background loud-server bash -ec "cd '$clone'; $(from_readme $to_serve | on_free_ports)"
await 120 "the server of the README" says loud-server "listening on"
background loud bash -ec "$(from_readme $to_run | on_free_ports)"
loud_arrived() { http GET "127.0.0.1:$stats_port" / "" | grep '"projects/p/topics/loud":100' | grep -q '"Backlog":0,'; }
await 240 "a hundred lines to be shouted and none to be left" loud_arrived
echo "a hundred lines were published in capitals"

step "a test of one's own, from the README of pubsubtest"
mkdir tested
cd tested
# The document shows the test without its imports; they are those of the file that it names.
{
	echo "package tested"
	sed -n '/^import (/,/^)/p' "$clone/pubsubio/pubsubtest/usertest/shout_test.go"
	block go "$clone/pubsubio/pubsubtest/README.md" 1
	block go "$clone/pubsubio/pubsubtest/README.md" 2
} >shout_test.go
go mod tidy
go test -count=1 -v . 2>&1 | grep -E "^(---|ok|FAIL|PASS)" | tee "$out/tested"
says tested "^--- PASS: TestShout_PublishesEveryLineAndAcknowledgesIt"

step "Google's emulator"
emulator=$(command -v cloud-pubsub-emulator || echo /usr/lib/google-cloud-sdk/platform/pubsub-emulator/bin/cloud-pubsub-emulator)
if [[ -x $emulator ]]; then
	port=$(free_port 8085)
	background emulator "$emulator" --host=127.0.0.1 --port="$port"
	await 60 "the emulator" says emulator "Server started"
	at=127.0.0.1:$port
	for topic in input output; do
		http PUT "$at" "/v1/$project/topics/$topic" "{}" >/dev/null
		http PUT "$at" "/v1/$project/subscriptions/$topic" "{\"topic\":\"$project/topics/$topic\"}" >/dev/null
	done
	"$bin/loadgen" --emulator_endpoint="$at" --topic=$project/topics/input --messages=2000 --rate=0 --report="$out/emulator-sent.json"
	"$bin/relay" --emulator_endpoint="$at" --input_subscriptions=$project/subscriptions/input --output_topic=$project/topics/output --max_messages=2000
	"$bin/verify" --emulator_endpoint="$at" --subscription=$project/subscriptions/output --expected="$out/emulator-sent.json" --report="$out/emulator-found.json"
	reports "$out/emulator-found.json" '"arrived": 2000,' '"lost": 0,'
elif [[ -n ${PUBSUBIO_REQUIRE_EMULATOR:-} ]]; then
	fail "cloud-pubsub-emulator is missing: install the Debian package google-cloud-cli-pubsub-emulator"
else
	echo "skipped: there is no cloud-pubsub-emulator; the Debian package google-cloud-cli-pubsub-emulator has it"
fi

step "a load through a relay with faults: a service that fails, and a relay that is killed"
server faults-server --topic=$project/topics/input --subscription=$project/subscriptions/input=$project/topics/input \
	--topic=$project/topics/output --subscription=$project/subscriptions/output=$project/topics/output \
	--fail=Publish=UNAVAILABLE:0.05 --fail=Acknowledge=UNAVAILABLE:0.05 --delay=Publish=2ms
readonly load=60000
"$bin/loadgen" --emulator_endpoint="$endpoint" --topic=$project/topics/input --messages=$load --rate=0 --report="$out/sent.json"
relay=("$bin/relay" "--emulator_endpoint=$endpoint" "--input_subscriptions=$project/subscriptions/input" "--output_topic=$project/topics/output")
background relay-killed "${relay[@]}"
killed=$!
await 60 "the relay to be at work" has_published output $((load / 10))
kill -KILL -- "-$killed"
echo "killed a relay that had published $(published output) of $load messages"
background relay "${relay[@]}"
relay_pid=$!
"$bin/verify" --emulator_endpoint="$endpoint" --subscription=$project/subscriptions/output --expected="$out/sent.json" \
	--stop_when_idle=90s --report="$out/found.json" --plot="$out/latency.svg"
reports "$out/found.json" "\"arrived\": $load," '"lost": 0,'
kill -INT "$relay_pid"
status=0
wait "$relay_pid" || status=$?
((status == 130)) || fail "the interrupted relay ended with $status"

step "poison, dead letters and their replay"
server poison-server --topic=$project/topics/input --subscription=$project/subscriptions/input=$project/topics/input \
	--topic=$project/topics/strict --json-only=$project/topics/strict --subscription=$project/subscriptions/strict=$project/topics/strict \
	--subscription=$project/subscriptions/all=$project/topics/strict \
	--topic=$project/topics/dead-letters --subscription=$project/subscriptions/dead-letters=$project/topics/dead-letters \
	--topic=$project/topics/repaired --subscription=$project/subscriptions/repaired=$project/topics/repaired
"$bin/loadgen" --emulator_endpoint="$endpoint" --topic=$project/topics/input --messages=10000 --poison=0.01 --rate=0 --report="$out/poison-sent.json"
"$bin/relay" --emulator_endpoint="$endpoint" --input_subscriptions=$project/subscriptions/input --output_topic=$project/topics/strict \
	--dead_letter_topic=$project/topics/dead-letters --max_messages=10000
"$bin/verify" --emulator_endpoint="$endpoint" --subscription=$project/subscriptions/strict --expected="$out/poison-sent.json" --report="$out/strict.json"
reports "$out/strict.json" '"lost": 0,'
letters=$(published dead-letters)
((letters > 0)) || fail "there are no dead letters"
replay=("$bin/replay" "--emulator_endpoint=$endpoint" "--dead_letter_subscription=$project/subscriptions/dead-letters" "--stop_when_idle=2s")
"${replay[@]}" --dry_run
# Where they were to go they would be refused again: they go where they are taken.
"${replay[@]}" --error_contains=JSON --output_topic=$project/topics/repaired --report="$out/replay.json"
reports "$out/replay.json" "\"published\": $letters," '"left": 0,'
"$bin/verify" --emulator_endpoint="$endpoint" --subscription=$project/subscriptions/all,$project/subscriptions/repaired \
	--expected="$out/poison-sent.json" --require_poison --report="$out/repaired.json"
reports "$out/repaired.json" '"arrived": 10000,' '"lost": 0,'

step "counts in windows, and their plot"
"$bin/loadgen" --emulator_endpoint="$endpoint" --topic=$project/topics/repaired --messages=6000 --keys=4 --rate=1500 --report="$out/counted-sent.json"
"$bin/windowcount" --emulator_endpoint="$endpoint" --input_subscriptions=$project/subscriptions/repaired --by_attribute=load_key \
	--window=1s --max_messages=6000 --report="$out/counted.json" --plot="$out/counts.svg"
reports "$out/counted.json" '"read": 6000,'
grep -q "</svg>" "$out/counts.svg" || fail "there is no plot"

printf '\nthe walk has arrived, after %d s\n' "$SECONDS"
