"""Where the servers' shipped configuration is."""

from pathlib import Path


def config_folder() -> Path:
    """Return the folder: inside the package in a wheel, above it in the tree."""
    inside = Path(__file__).with_name("config")
    return inside if inside.is_dir() else Path(__file__).parents[2] / "config"
