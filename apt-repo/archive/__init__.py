# SPDX-License-Identifier: MIT
"""A small signed apt archive: immutable pool, numbered states, one commit point."""
