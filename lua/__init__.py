"""The Lua scripts of ``dramatiq_echomq``, shipped as package data."""
