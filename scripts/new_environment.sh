# new_environment PYTHON FOLDER: a fresh virtual environment with pip. By virtualenv where this Python comes without ensurepip, as
# Debian's and Ubuntu's do until python3-venv is installed. For scripts that source this.
new_environment() {
  if "$1" -c 'import ensurepip' 2>/dev/null; then
    "$1" -m venv --clear "$2"
  elif "$1" -c 'import virtualenv' 2>/dev/null; then
    "$1" -m virtualenv --quiet --clear --no-download "$2"
  else
    echo "$1 makes no virtual environments: install python3-venv, or virtualenv for it" >&2
    return 1
  fi
}
