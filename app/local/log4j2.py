"""How local brokers and MM2 log: to their stdout, warnings only, but for what tells that MM2 is up."""

from __future__ import annotations

from pathlib import Path

CONFIGURATION = """status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %X{connector.context}%m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.mirror.name = org.apache.kafka.connect.mirror
logger.mirror.level = info
"""


def log4j2_option(folder: Path) -> str:
    """Writes the configuration into the folder; returns the JVM option that makes it hold."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "log4j2.properties"
    path.write_text(CONFIGURATION, encoding="utf-8")
    return f"-Dlog4j2.configurationFile={path.resolve()}"
