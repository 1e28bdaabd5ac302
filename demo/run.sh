#!/usr/bin/env bash
# A real 4-rank PyTorch job in which one rank misbehaves: the verdict from the logs it left, and again while it hangs.
set -uo pipefail
cd "$(dirname "$0")"
logs=$(mktemp -d)
bundle=$(mktemp -d "${TMPDIR:-/tmp}/phalanx-demo-XXXXXX")/bundle # kept: the last line of the demo names it
trap 'rm -rf "$logs"' EXIT
export OMP_NUM_THREADS=1

echo "1. A job of 4 ranks starts (torchrun, Gloo). One of them will break formation. Its time-out is cut to 10 s."
TIMEOUT=10 timeout 100 torchrun --standalone --nproc-per-node 4 --log-dir "$logs" --redirects 3 train.py >"$logs/torchrun.log" 2>&1
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
echo
echo "4. The same job with PyTorch's own time-out of half an hour: phalanx run -n 4 --on-stall abort train.py"
echo
timeout 100 phalanx run -n 4 --on-stall abort --bundle "$bundle" train.py
status=$?
[ "$status" = 1 ] || { echo "demo: expected the stall to end the job (status 1), got status $status" >&2; exit 1; }
