"""The scheduler: which pod runs on which node.

`state` holds what is known of the cluster, `framework` what a plugin is, `plugins` the plugins.
"""
