"""Loops that bring the cluster to where its objects say it should be, one package or module per loop."""
