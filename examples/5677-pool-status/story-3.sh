#!/bin/sh
# For monitoring, every five minutes from cron: an alert and exit code 1 if fewer GPUs are available than the first
# argument says (5 without one).
set -eu
threshold=${1:-5}
request=$(kubectl create -f "$(dirname "$0")/story-3.yaml" -o name)
trap 'kubectl delete "$request" > /dev/null' EXIT
kubectl wait --for=condition=Complete "$request" --timeout=60s > /dev/null
available=$(kubectl get "$request" -o jsonpath='{.status.pools[*].availableDevices}' |
    awk '{ for (i = 1; i <= NF; i++) sum += $i } END { print sum + 0 }')
if [ "$available" -lt "$threshold" ]; then
    echo "ALERT: only $available devices available cluster-wide"
    exit 1
fi
