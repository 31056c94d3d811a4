"""Spark loads its classes from the archive that `python -m app.spark.class_archive` made."""

from __future__ import annotations

import os

import psutil
import pytest
from pyspark.sql import SparkSession

from app.spark.submit_options import class_archive


@pytest.mark.skipif(not class_archive().exists(), reason="`python -m app.spark.class_archive` has not made it")
def test_spark_loads_its_classes_from_the_archive(spark: SparkSession) -> None:
    jvms = [one for one in psutil.Process(os.getpid()).children(recursive=True) if one.name() == "java"]
    assert any(str(class_archive()) == mapped.path for jvm in jvms for mapped in jvm.memory_maps())
