"""Packages are found, and ``lua/`` ships as one of them. All else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["dramatiq_echomq*"]), "dramatiq_echomq.lua"])
