"""What `velodrome doctor` measures with, one instrument a file, each usable by itself; `judge/diagnosis.py` judges."""
