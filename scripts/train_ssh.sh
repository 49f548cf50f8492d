#!/usr/bin/env bash
# Trains on several hosts by ssh: the same command on each, with the TF_CONFIG that names them all.
#
#   scripts/train_ssh.sh host1[:port] host2[:port] ... -- t2t-lite-trainer --problem=... --data_dir=...
#
# Each host has t2t-lite on its PATH (or gets it: -- env PATH=... t2t-lite-trainer), the data and the
# output_dir under the paths that are given, and lets ssh in without a password. They talk to each other
# on the port, 2222 where none is given. Ctrl-C here, or the loss of one, ends all; then give the same
# command again. The outputs of all come here, each line with its host in front.
set -euo pipefail

hosts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in *:*) hosts+=("$1") ;; *) hosts+=("$1:2222") ;; esac
  shift
done
if [ ${#hosts[@]} = 0 ] || [ $# -lt 2 ]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
shift
workers=$(printf '"%s", ' "${hosts[@]##*@}") # without the users

pids=()
# -tt: where this ends, so does the terminal there, and the trainer saves and stops. The bar that it
# draws on a terminal comes here as lines.
for index in "${!hosts[@]}"; do
  config="{\"cluster\": {\"worker\": [${workers%, }]}, \"task\": {\"type\": \"worker\", \"index\": $index}}"
  ssh -tt "${hosts[index]%:*}" "TF_CONFIG=$(printf %q "$config") $(printf '%q ' "$@")" \
    < /dev/null > >(stdbuf -oL tr '\r' '\n' | sed -u "s/^/${hosts[index]}: /") 2>&1 &
  pids+=($!)
done
trap 'kill "${pids[@]}" 2>/dev/null || true' INT TERM HUP
# 255 is ssh's own, 126 and 127 are of a command that is not there: the others would wait for that host.
for _ in "${pids[@]}"; do
  wait -n || case $? in 255 | 126 | 127) kill "${pids[@]}" 2> /dev/null || true ;; esac
done
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=$?
done
exit "$status"
