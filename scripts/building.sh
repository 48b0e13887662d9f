# building NAME LOG COMMAND...: runs a build by ninja, and says how far it is and for how long it will go on: on one line of a terminal,
# elsewhere every 15 s. All that it prints goes to LOG, and is shown only if it fails. For scripts that source this.
building() {
  local name=$1 log=$2 start=$SECONDS every=15 next=0 first=
  shift 2
  mkdir -p "$(dirname "$log")"
  if [[ -t 1 ]]; then every=1; fi
  echo "$name, which takes some minutes; all that is said goes to $log"
  if ! "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
    [[ "$line" =~ ^\ *\[([0-9]+)/([0-9]+)\] ]] || continue
    local built=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    local passed=$((SECONDS - ${first:=$SECONDS}))
    if ((passed < next || built < 10)); then continue; fi
    next=$((passed + every))
    local left=$((passed * (all - built) / built)) text
    if ((left < 100)); then left="$left s"; else left="$(((left + 30) / 60)) min"; fi
    text="$built of $all steps, about $left left"
    if [[ -t 1 ]]; then printf '\r%-60s' "$text"; else echo "$text"; fi
  done; then
    echo "failed:"
    cat "$log"
    exit 1
  fi
  if [[ -t 1 ]]; then printf '\r%-60s\r' ""; fi
  echo "$name: $((SECONDS - start)) s"
}
