"""What Spark's log leaves out, by the names of its classes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import javaproperties
import pyspark

from app.spark import spark_session

JARS = Path(pyspark.__file__).parent / "jars"
SPARKS = ("org.apache.spark.", "org.apache.hadoop.")


def test_every_class_that_is_to_be_quiet_is_in_the_jars_of_this_spark() -> None:
    file = Path(spark_session.__file__).parent / "defaults" / "log4j2.properties"
    properties = javaproperties.loads(file.read_text(encoding="utf-8"))
    named = {value for key, value in properties.items() if key.endswith(".name") and value.startswith(SPARKS)}
    assert named
    there = {name for jar in JARS.glob("*.jar") for name in zipfile.ZipFile(jar).namelist()}
    assert {f"{name.replace('.', '/')}.class" for name in named} <= there
