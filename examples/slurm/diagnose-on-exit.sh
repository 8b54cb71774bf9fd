# shellcheck shell=bash
# Diagnose a batch job that fails, as it ends, beside its log.
#
# In the sbatch script, before the work and after any EXIT trap of your own:
#
#     source /path/to/diagnose-on-exit.sh
#
# When the script ends with anything but 0, or Slurm ends it, the verdict is written beside the job's log as
# flatline-JOBID.txt and flatline-JOBID.json.  The job's exit status never changes, and it takes
# FLATLINE_LIMIT_S seconds at most (20: Slurm sends SIGKILL 30 s after SIGTERM, its default
# KillWait).
#
#     FLATLINE=/opt/flatline/bin/flatline   the program, where it is not on the PATH
#     FLATLINE_DIR=/shared/verdicts         where the verdict goes
#     FLATLINE_ALWAYS=1                     after status 0, too

flatline_on_exit() {
  # A subshell: options, traps and variables of the job's script stay as they are, and nothing
  # that goes wrong here is the job's.
  (
    set +eu
    trap - EXIT ERR
    trap '' TERM
    [ -n "${SLURM_JOB_ID:-}" ] || exit 0
    program=${FLATLINE:-flatline}
    command -v "$program" >/dev/null || exit 0
    record=$(timeout 5 scontrol show job "$SLURM_JOB_ID")
    log=$(sed -n 's/^ *StdOut=//p' <<<"$record" | head -n 1)
    err=$(sed -n 's/^ *StdErr=//p' <<<"$record" | head -n 1)
    [ -r "$log" ] || exit 0
    { [ "$err" != "$log" ] && [ -r "$err" ]; } || err=
    # A shell that SIGTERM ends sees 0 in its EXIT trap: then Slurm's own line tells.
    ended="[*]{3} (JOB|STEP) ${SLURM_JOB_ID}[ .].* CANCELLED AT"
    [ "$1" -ne 0 ] || [ -n "${FLATLINE_ALWAYS:-}" ] \
      || tail -qn 50 "$log" ${err:+"$err"} | grep -Eq "$ended" || exit 0
    job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
    out=${FLATLINE_DIR:-$(dirname "$log")}/flatline-${job:-$SLURM_JOB_ID}
    # The logs alone: the controller's record still says RUNNING.
    for form in text:txt json:json; do
      timeout -k 2 "${FLATLINE_LIMIT_S:-20}" "$program" diagnose "$log" ${err:+"$err"} \
        --format "${form%:*}" --output "$out.${form#*:}" </dev/null >/dev/null 2>&1 &
    done
    wait
    [ -s "$out.txt" ] && printf 'flatline: the verdict is in %s.txt\n' "$out" >&2
  ) || :
  return "$1"
}

# An EXIT trap that stands already is kept: it runs last, and sees the job's own status.
flatline_earlier=$(trap -p EXIT)
flatline_earlier=${flatline_earlier#"trap -- "}
eval "flatline_earlier=${flatline_earlier% EXIT}"
# shellcheck disable=SC2064,SC2154  # the trap that stands now is what is meant
trap "flatline_status=\$?; set +e; flatline_on_exit \"\$flatline_status\"
$flatline_earlier" EXIT
