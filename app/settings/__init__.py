"""What a properties file comes to, as plain values: `load` is the way in."""

from app.properties.mistakes import ConfigurationError, Mistake
from app.settings.load import load
from app.settings.model import ClusterSettings, JobSettings, Settings

__all__ = ["ClusterSettings", "ConfigurationError", "JobSettings", "Mistake", "Settings", "load"]
