# SPDX-License-Identifier: Apache-2.0
# What only zsh understands: `emulate -L` gives the caller's options back when the function returns.

typeset -g _overcap_shell=zsh

_overcap_which() {
  whence -p -- "$1"
}

function overcap_setup_job {
  emulate -L zsh
  setopt unset no_err_exit no_err_return no_pipe_fail no_all_export
  _overcap_job
}

function overcap_setup_python {
  emulate -L zsh
  setopt unset no_err_exit no_err_return no_pipe_fail no_all_export
  _overcap_python
}

function overcap_setup_env {
  emulate -L zsh
  setopt unset no_err_exit no_err_return no_pipe_fail no_all_export
  _overcap_job && _overcap_python
}

# Completes `launch` as `overcap launch`.
_overcap_launch() {
  words=(overcap launch "${(@)words[2,-1]}")
  (( CURRENT += 1 ))
  _overcap
}
