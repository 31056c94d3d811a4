"""The options of `lockstep configs`, under kafka-configs' own names where it has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.time_options import seconds
from app.configs_tool.flags import EntityType

ClusterOption = Annotated[str | None, typer.Option("--cluster", help="An alias of the properties file.")]
ServerOption = Annotated[str | None, typer.Option("--bootstrap-server", help="HOST:PORT of brokers.")]
ClientOption = Annotated[
    Path | None, typer.Option("--command-config", help="Java client properties for --bootstrap-server.")
]
DescribeOption = Annotated[bool, typer.Option("--describe", help="Every level, the one in force marked.")]
AlterOption = Annotated[bool, typer.Option("--alter", help="Adds, changes and deletes.")]
EntityTypeOption = Annotated[EntityType | None, typer.Option("--entity-type")]
EntityNameOption = Annotated[str | None, typer.Option("--entity-name", help="A broker's id, a topic, or a flow.")]
EntityDefaultOption = Annotated[
    bool, typer.Option("--entity-default", help="The default of all brokers, or of all flows.")
]
BrokerOption = Annotated[str | None, typer.Option("--broker", help="For --entity-type brokers --entity-name.")]
BrokerDefaultsOption = Annotated[
    bool, typer.Option("--broker-defaults", help="For --entity-type brokers --entity-default.")
]
TopicOption = Annotated[str | None, typer.Option("--topic", help="For --entity-type topics --entity-name.")]
AddOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-config", help="k1=v1,k2=[v1,v2]. A value ${file:PATH:KEY} or ${env:NAME} is looked up, ? asked for."
    ),
]
AddFileOption = Annotated[Path | None, typer.Option("--add-config-file", help="The same, as properties.")]
DeleteOption = Annotated[list[str] | None, typer.Option("--delete-config", help="k1,k2")]
AllOption = Annotated[bool, typer.Option("--all", help="Also what is not set at the entity itself.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="The brokers check it; nothing is written.")]
CustomOption = Annotated[bool, typer.Option("--custom", help="Names that Kafka does not know are no mistake.")]
LiteralOption = Annotated[bool, typer.Option("--literal", help="References are for the brokers' own providers.")]
CanaryOption = Annotated[
    str | None, typer.Option("--canary", help="First on this broker; when all is well, the default of all.")
]
CanaryTimeOption = Annotated[
    float | None, typer.Option("--canary-time", parser=seconds, help="How long to watch it.", show_default="60")
]
