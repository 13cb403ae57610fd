# SPDX-License-Identifier: Apache-2.0
"""The tables of cases, one file for each subject. ALL_CASES has them all."""
from behaviour.cases import admin, batch, crossings, elastic, jobs, launch, policies, refusals, shells, slurm, stores, workspaces

TABLES = (jobs, batch, elastic, launch, shells, slurm, stores, workspaces, policies, admin, refusals, crossings)
ALL_CASES = [case for table in TABLES for case in table.CASES]
