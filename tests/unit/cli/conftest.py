"""Fixtures of tests that run the command."""

from command_fixtures import *  # noqa: F403
