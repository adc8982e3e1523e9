"""`allot demo`: examples of the KEPs in a running cluster.

`command`       options, Ctrl-C
`stories`       commentary and steps of each KEP, as values
`steps`         what a step can be
`needs`         the devices that a scene needs, and what holds them
`performance`   plays stories on the terminal
`runner`        performs steps through the API, and shows the kubectl command that does the same
"""

from allot.cli.demo.command import demo, play

__all__ = ["demo", "play"]
