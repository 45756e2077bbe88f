"""Decides how a run and a comparison look on paper and on a screen; reads no log and starts no Spark.

One HTML file that refers to nothing outside: pictures that are complete without scripts, and scripts that
make them answer to the mouse.
"""

from panda_spark.report.data import WANTED, ComparisonData, RunData, Wanted
from panda_spark.report.page import write, write_comparison
from panda_spark.report.sentences import sentence

__all__ = ["WANTED", "ComparisonData", "RunData", "Wanted", "sentence", "write", "write_comparison"]
