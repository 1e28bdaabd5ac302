#!/usr/bin/env bash
# A real 4-rank PyTorch job in which one rank misbehaves; then the verdict from the logs it left.
set -uo pipefail
cd "$(dirname "$0")"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export OMP_NUM_THREADS=1

echo "1. A job of 4 ranks starts (torchrun, Gloo). One of them will break formation."
timeout 100 torchrun --standalone --nproc-per-node 4 --log-dir "$logs" --redirects 3 train.py >"$logs/torchrun.log" 2>&1
echo "   The job ended with status $?."
echo
echo "2. What the user is left with: $(find "$logs" -type f | wc -l) files, $(cat $(find "$logs" -type f) | wc -l) lines."
echo "   torchrun's own root cause:"
grep -A6 'Root Cause' "$logs/torchrun.log" | grep -E 'rank|exitcode' | sed 's/^/   /'
echo
echo "3. phalanx diagnose LOGS"
echo
phalanx diagnose "$logs"
status=$?
[ "$status" = 1 ] || { echo "demo: expected a verdict (status 1), got status $status" >&2; exit 1; }
