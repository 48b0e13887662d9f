#!/usr/bin/env bash
# Takes near duplicates out of a table of vectors, with the program alone: .csv, .npy, .parquet or any other file of vectors.
#
#   pip install build/wheel/dist/kithnn-*.whl
#   near_duplicates.sh [TABLE [RADIUS]]
#
# Without TABLE 5,000 made vectors and 300 copies of them take its place, as a .csv. What is made lies in this folder: unique.npy,
# rows.ibin (the row numbers that stayed) and groups.ibin (the group of each row).
set -euo pipefail

if (( $# > 0 )); then
  table=$1
else
  table=made.csv
  kith sample made.fbin --rows 5000 --cols 16
  kith convert made.fbin made.npy
  python3 - << 'PYTHON'
import numpy as np

x = np.load("made.npy")
np.savetxt("made.csv", np.concatenate([x, x[:300] + 0.0001]), delimiter=",", header=",".join(f"c{i}" for i in range(16)), comments="")
PYTHON
fi
radius=${2:-0.01}

kith convert "$table" vectors.fbin            # float64, Fortran order, .csv, .parquet and .npz become what all commands read
kith info vectors.fbin
kith dedup --data vectors.fbin --radius "$radius" --out unique.npy --out-rows rows.ibin --out-labels groups.ibin
kith head groups.ibin --rows 0:3
kith info unique.npy
