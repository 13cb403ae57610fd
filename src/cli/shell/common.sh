#!/bin/bash
# shellcheck disable=SC2154  # _overcap_program and _overcap_shell are set before and behind this text
# SPDX-License-Identifier: Apache-2.0
# What `overcap shell-init` prints for both shells, read by bash and zsh alike: every expansion is quoted, no arrays, no
# globs. Functions here return non-zero with one line on stderr and never exit; the ones that users call stand in
# bash.sh and zsh.zsh, where the options of the caller's shell are set aside first. Whatever is sourced or evaluated
# (modules, conda, a venv's activate) sees our local variables, so their names all begin with oc_.

_overcap_fail() {
  printf 'overcap: %s\n' "$1" >&2
  return "${2:-1}"
}

# The last line of what a program said, for a message of one line.
_overcap_last_line() {
  local oc_text=$1 oc_newline='
'
  while [ "${oc_text%"$oc_newline"}" != "$oc_text" ]; do oc_text=${oc_text%"$oc_newline"}; done
  printf '%s' "${oc_text##*"$oc_newline"}"
}

_overcap_job() {
  local oc_lines oc_status
  oc_lines=$("$_overcap_program" env --export)
  oc_status=$?
  if [ "$oc_status" -ne 0 ]; then
    _overcap_fail "the job's environment is not set up: 'overcap env --export' failed" "$oc_status"
    return
  fi
  # Made by overcap itself: export lines whose values are quoted.
  eval "$oc_lines" || { _overcap_fail "the job's environment is set up in part only"; return; }
  "$_overcap_program" env
}

_overcap_python() {
  local oc_plan oc_rest oc_line oc_newline='
'
  local oc_site='' oc_python=python3 oc_venv='' oc_root='' oc_environment=base oc_active="${CONDA_PREFIX:-}"
  if [ -n "${VIRTUAL_ENV:-}" ]; then
    printf "python: keeping the active virtual environment '%s'\n" "$VIRTUAL_ENV"
    return 0
  fi
  oc_plan=$("$_overcap_program" shell-init --python-plan) ||
    { _overcap_fail "Python is not set up: 'overcap shell-init --python-plan' failed"; return; }
  if [ -n "$oc_active" ]; then printf "python: keeping the active conda environment '%s'\n" "$oc_active"; fi
  oc_rest=$oc_plan
  while [ -n "$oc_rest" ]; do
    oc_line=${oc_rest%%"$oc_newline"*}
    if [ "$oc_line" = "$oc_rest" ]; then oc_rest=''; else oc_rest=${oc_rest#*"$oc_newline"}; fi
    _overcap_python_step "${oc_line%% *}" "${oc_line#* }" || return
  done
  _overcap_venv
}

# One line of the plan; sets variables of _overcap_python.
_overcap_python_step() {
  case $1 in
    site) oc_site=$2 ;;
    python) oc_python=$2 ;;
    venv) oc_venv=$2 ;;
    conda_root) oc_root=$2 ;;
    conda_environment) oc_environment=$2 ;;
    module_path) if [ -z "$oc_active" ]; then _overcap_module use "$2"; fi ;;
    module) if [ -z "$oc_active" ]; then _overcap_module load "$2"; fi ;;
    conda) if [ -z "$oc_active" ]; then _overcap_conda "$2"; fi ;;
    conda_if_found) if [ -z "$oc_active" ]; then _overcap_conda_if_found; fi ;;
    *) _overcap_fail "this shell's functions do not know the step '$1'; evaluate overcap shell-init again" ;;
  esac
}

_overcap_module() {
  local oc_init
  for oc_init in "${LMOD_PKG:-}/init/$_overcap_shell" "${MODULESHOME:-}/init/$_overcap_shell"; do
    if command -v module >/dev/null 2>&1; then break; fi
    # shellcheck disable=SC1090  # the site's own file
    if [ -r "$oc_init" ]; then . "$oc_init"; fi
  done
  if ! command -v module >/dev/null 2>&1; then
    _overcap_fail "the site '$oc_site' wants 'module $1 $2', and this shell has no 'module' command"
    return
  fi
  module "$1" "$2" || _overcap_fail "'module $1 $2' failed, which the site '$oc_site' wants"
}

_overcap_conda_if_found() {
  local oc_name
  for oc_name in conda mamba micromamba; do
    if command -v "$oc_name" >/dev/null 2>&1; then
      _overcap_conda "$oc_name"
      return
    fi
  done
}

# _overcap_conda PROGRAM: activates $oc_environment of conda, mamba or micromamba.
_overcap_conda() {
  local oc_program oc_hook
  if ! typeset -f "$1" >/dev/null; then
    oc_program=$(_overcap_conda_program "$1") || return
    oc_hook=$("$oc_program" shell hook --shell "$_overcap_shell" 2>/dev/null) ||
      oc_hook=$("$oc_program" "shell.$_overcap_shell" hook) || oc_hook=''
    if [ -z "$oc_hook" ]; then
      _overcap_fail "'$oc_program' does not say how this shell uses it"
      return
    fi
    if [ -n "$oc_root" ] && [ "$1" = micromamba ]; then export MAMBA_ROOT_PREFIX="$oc_root"; fi
    # What the program itself prints for this purpose.
    eval "$oc_hook" || { _overcap_fail "what '$oc_program' prints for this shell failed"; return; }
  fi
  # Older releases of mamba leave activation to conda.
  if typeset -f "$1" >/dev/null; then oc_program=$1; else oc_program=conda; fi
  "$oc_program" activate "$oc_environment" ||
    { _overcap_fail "'$oc_program activate $oc_environment' failed"; return; }
  if [ -z "${CONDA_PREFIX:-}" ]; then
    _overcap_fail "'$oc_program activate $oc_environment' activated nothing"
    return
  fi
}

_overcap_conda_program() {
  local oc_file
  if [ -n "$oc_root" ]; then
    for oc_file in "$oc_root/bin/$1" "$oc_root/condabin/$1"; do
      if [ -x "$oc_file" ]; then printf '%s' "$oc_file"; return 0; fi
    done
    _overcap_fail "no '$1' in '$oc_root', where the site '$oc_site' has it"
    return
  fi
  _overcap_which "$1" || _overcap_fail "the site '$oc_site' wants '$1', which is not on PATH"
}

# The name of the folder below venvs/: what the site says, else after the conda environment, the site, Python.
_overcap_venv_name() {
  local oc_prefix="${CONDA_PREFIX:-}"
  if [ -n "$oc_venv" ]; then printf '%s' "$oc_venv"; return 0; fi
  oc_prefix=${oc_prefix%/}
  case $oc_prefix in */mconda3 | */base) oc_prefix=${oc_prefix%/*} ;; esac
  if [ -n "${oc_prefix##*/}" ]; then printf '%s' "${oc_prefix##*/}"; return 0; fi
  if [ -n "$oc_site" ]; then printf '%s' "$oc_site"; return 0; fi
  "$1" -c 'import sys; sys.stdout.write("python%d.%d" % sys.version_info[:2])'
}

# Makes the virtual environment or takes the one that is there, and activates it.
_overcap_venv() {
  local oc_program oc_name oc_folder oc_path oc_how='using'
  oc_program=$(_overcap_which "$oc_python") || { _overcap_fail "no '$oc_python' is on PATH"; return; }
  oc_name=$(_overcap_venv_name "$oc_program") || { _overcap_fail "'$oc_program' does not run"; return; }
  oc_folder=${PBS_O_WORKDIR:-${SLURM_SUBMIT_DIR:-$PWD}}
  oc_path=$oc_folder/venvs/$oc_name
  case $oc_path in
    *[\"\$\`\\]* | *"$oc_newline"*)
      _overcap_fail "no virtual environment can stand at '$oc_path': quotes and \$ break its activate script"
      return
      ;;
  esac
  if [ ! -d "$oc_folder" ]; then
    _overcap_fail "the folder '$oc_folder', where the job was submitted, is not here"
    return
  fi
  if [ ! -e "$oc_path" ]; then
    _overcap_make_venv "$oc_program" || return
    oc_how='made'
  fi
  if [ ! -r "$oc_path/bin/activate" ] || [ ! -x "$oc_path/bin/python3" ]; then
    _overcap_fail "'$oc_path' is no working virtual environment, or another shell is just making it; if not, remove it"
    return
  fi
  # shellcheck disable=SC1091  # made by Python
  . "$oc_path/bin/activate" || { _overcap_fail "cannot activate '$oc_path'"; return; }
  if [ ! "${VIRTUAL_ENV:-}" -ef "$oc_path" ]; then
    _overcap_fail "'$oc_path' was made for '${VIRTUAL_ENV:-}' and has moved since; remove it"
    if typeset -f deactivate >/dev/null; then deactivate; fi
    return 1
  fi
  printf "python: %s the virtual environment '%s'\n" "$oc_how" "$oc_path"
}

# A failure leaves no half-made folder behind.
_overcap_make_venv() {
  local oc_said
  oc_said=$(command mkdir -p -- "${oc_path%/*}" 2>&1 && command mkdir -- "$oc_path" 2>&1) ||
    { _overcap_fail "cannot make the folder '$oc_path': ${oc_said##*: }"; return; }
  if _overcap_which uv >/dev/null; then
    oc_said=$(command uv venv --quiet --system-site-packages --python "$1" "$oc_path" 2>&1) && return
  else
    oc_said=$("$1" -m venv --system-site-packages "$oc_path" 2>&1) && return
  fi
  command rm -rf -- "$oc_path"
  _overcap_fail "cannot make the virtual environment '$oc_path': $(_overcap_last_line "$oc_said")"
}

# Beside the alias, which scripts do not see.
function launch {
  "$_overcap_program" launch "$@"
}
