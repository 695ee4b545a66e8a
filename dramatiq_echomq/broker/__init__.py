"""Dramatiq's messages as EchoMQ jobs: the broker and what keeps its jobs in flight."""
