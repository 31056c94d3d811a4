#!/usr/bin/env bash
# Runs `lockstep run`, or `lockstep verify`, on Spark: local by default, any master, in client mode.
#   ./spark-submit.sh [spark-submit options] [-- [verify] lockstep options]
#   ./spark-submit.sh --master spark://host:7077 -- --config /etc/lockstep/mirror.properties --flow 'a->b'
set -u
here=$(cd "$(dirname "$0")" && pwd)
submit=()
while [ $# -gt 0 ] && [ "$1" != "--" ]; do submit+=("$1"); shift; done
[ $# -gt 0 ] && shift
command=run
if [ "${1-}" = verify ]; then command=verify; shift; fi

bin=${SPARK_HOME:+$SPARK_HOME/bin/}
if [ -z "$bin" ] && [ -x "$here/.venv/bin/spark-submit" ]; then bin=$here/.venv/bin/; fi
if [ -x "$here/.venv/bin/python" ]; then export PYSPARK_PYTHON=${PYSPARK_PYTHON:-$here/.venv/bin/python}; fi

# Lockstep's defaults, and the Kafka connector, which the first start fetches.
python=${PYSPARK_DRIVER_PYTHON:-${PYSPARK_PYTHON:-python3}}
listed=$("$python" "$here/app/spark/submit_options.py" ${submit[@]+"${submit[@]}"}) || exit
options=()
while IFS= read -r option; do options+=("$option"); done <<<"$listed"
# With a local master all of Spark is on this machine: its UI and RPC listen on loopback alone. The properties cannot say
# that of the UI, which goes by this variable only.
case "${MASTER:-local} ${submit[*]-} " in
  *--master[\ =]local* | *spark.master=local*) alone=yes ;;
  local*--master* | local*spark.master=* | local*--properties-file* | local*--deploy-mode*) alone= ;;
  local*) alone=yes ;;
  *) alone= ;;
esac
# glibc gives each thread that allocates an arena, which keeps what is freed in it: a tenth of the driver's Python.
export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-2}
if [ -n "$alone" ]; then export SPARK_LOCAL_IP=${SPARK_LOCAL_IP:-127.0.0.1}; fi

# spark-submit's JVM would die of a signal with a batch under way. So it runs in a process group of its own, and the
# signal goes to the driver's Python process, which ends after the batch; the JVM follows.
LOCKSTEP_PID_FILE=$(mktemp "${TMPDIR:-/tmp}/lockstep-pid.XXXXXX")
export LOCKSTEP_PID_FILE
trap 'rm -f "$LOCKSTEP_PID_FILE"' EXIT
set -m
"${bin}spark-submit" "${options[@]}" "$here/app/submit.py" "$command" "$@" </dev/null &
job=$!
set +m

pass_on() {
  local driver
  driver=$(cat "$LOCKSTEP_PID_FILE" 2>/dev/null)
  if [ -n "$driver" ] && kill -"$1" "$driver" 2>/dev/null; then return; fi
  [ "$1" = HUP ] || kill -TERM -- -"$job" 2>/dev/null
}
trap 'pass_on TERM' TERM
trap 'pass_on INT' INT
trap 'pass_on HUP' HUP

# A signal interrupts `wait`; the job's own exit code is what counts.
while kill -0 "$job" 2>/dev/null; do wait "$job"; done
wait "$job"
code=$?

# A JVM that was killed leaves the driver's Python process behind. It ends by itself within 15 s (app/spark/driver_end.py),
# and a supervisor must not start another job beside it.
driver=$(cat "$LOCKSTEP_PID_FILE" 2>/dev/null)
waited=0
if [ -n "$driver" ] && kill -0 "$driver" 2>/dev/null; then
  code=1
  # Its own last words went through the JVM.
  said="Spark's JVM has ended: something killed it (is the machine out of memory?). Start the job again: it compares"
  trap 'echo "$said everything first" >&2; rm -f "$LOCKSTEP_PID_FILE"' EXIT
fi
while [ -n "$driver" ] && [ "$waited" -lt 75 ] && kill -0 "$driver" 2>/dev/null; do
  waited=$((waited + 1))
  sleep 0.2
done
exit "$code"
