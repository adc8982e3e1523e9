"""`allot demo`: the stories of the KEPs, played in a running cluster.

`command`   options, the terminal, Ctrl-C
`stories`   what is said and done, as values
`steps`     what a step can be
`runner`    performs steps through the API, and shows the kubectl command that does the same
"""

from allot.cli.demo.command import demo, play

__all__ = ["demo", "play"]
