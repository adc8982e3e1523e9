"""What defaulting is made of. The defaults of a kind are in its module in `allot.apiserver.kinds`.

filling         filling in missing fields
pods            pods and pod templates
workloads       what several kinds of workloads share
services        services, and the addresses they get
pod_priority    the number behind a pod's priority class
"""
