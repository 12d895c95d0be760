"""`python -m gumbel_mpnn` is the command `gumbel-mpnn`."""

from gumbel_mpnn.cli import main

main()
