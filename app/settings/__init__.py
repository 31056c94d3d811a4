"""The settings of a properties file as plain values. `load` returns them."""

from app.properties.mistakes import ConfigurationError, Mistake
from app.settings.job_settings import ClusterSettings, JobSettings, Settings
from app.settings.load import load, load_job

__all__ = ["ClusterSettings", "ConfigurationError", "JobSettings", "Mistake", "Settings", "load", "load_job"]
