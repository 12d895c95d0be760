"""The command `gumbel-mpnn`, which is also `python -m gumbel_mpnn`."""

import sys


def main() -> None:
    """Run the command; Ctrl-C ends it with exit code 130 even while it is being imported."""
    try:
        from gumbel_mpnn.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        # If Ctrl-C comes inside `exec`, by which dataclasses are made, Python ends by a signal, not with an exit code,
        # even though the interrupt was caught. The next `exec` resets that.
        exec("")


if __name__ == "__main__":
    main()
