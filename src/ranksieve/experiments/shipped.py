"""Specifications that ship with ranksieve."""

from __future__ import annotations

from pathlib import Path

from ranksieve.errors import ParameterError, did_you_mean

SHIPPED = (Path(__file__).parent / "specs", Path(__file__).parents[3] / "experiments")  # installed, or a checkout


def shipped_specs() -> dict[str, Path]:
    """Files of the specifications that ship with ranksieve, by name."""
    folder = next(folder for folder in SHIPPED if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_spec(name: str | Path) -> Path:
    """A specification file, or one that ships with ranksieve by its name: `fig4`."""
    if Path(name).is_file():
        return Path(name)
    known = shipped_specs()
    if str(name) in known:
        return known[str(name)]
    hint = did_you_mean(name, known)
    raise ParameterError(f"{name}: no such file; {hint}give a TOML file, or one of {', '.join(known)}")
