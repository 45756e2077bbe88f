"""The first job of a fresh server: asks for a sum, so that the next one finds it awake; says its version."""

from __future__ import annotations

import sys


def main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(1000).selectExpr("sum(id) AS total").collect()
    assert rows[0]["total"] == 499_500
    sys.stdout.write(f"{spark.version}\n")


if __name__ == "__main__":
    main()
