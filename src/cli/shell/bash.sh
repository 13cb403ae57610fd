#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What only bash understands: `local -` gives the caller's options back when the function returns, however it returns.

# shellcheck disable=SC2034  # read by common.sh
_overcap_shell=bash

_overcap_which() {
  type -P -- "$1"
}

function overcap_setup_job {
  local -
  set +aeu +o pipefail
  _overcap_job
}

function overcap_setup_python {
  local -
  set +aeu +o pipefail
  _overcap_python
}

function overcap_setup_env {
  local -
  set +aeu +o pipefail
  _overcap_job && _overcap_python
}

# Completes `launch` as `overcap launch`.
_overcap_launch() {
  local -a COMP_WORDS=(overcap launch "${COMP_WORDS[@]:1}")
  local COMP_CWORD=$((COMP_CWORD + 1))
  _overcap
}
complete -o default -F _overcap_launch launch
