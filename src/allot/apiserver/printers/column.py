"""What tables are made of: columns with their descriptions, cells, and words for what is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

Cell = str | int | float | bool | None
Age = Callable[[datetime | None], str]
Row = Callable[[Any, Age], list[Cell]]

UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"
UNSET: Final = "<unset>"


class Column(NamedTuple):
    """A column of a table, as clients describe one. Priority 1 is shown by `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    @property
    def description(self) -> str:
        return DESCRIPTIONS.get(self.name, "")


class Table(NamedTuple):
    """The columns of a kind, and how a row is read from an object."""

    columns: tuple[Column, ...]
    row: Row
    descriptions: Mapping[str, str] = {}
    """Of columns that are not described here, by name."""
    order: Callable[[Any], Any] | None = None
    """What the rows of a list are sorted by; None for the order of the list."""

    def description(self, column: Column) -> str:
        return self.descriptions.get(column.name) or column.description


def number(name: str) -> Column:
    return Column(name, "integer")


def flag(name: str) -> Column:
    return Column(name, "boolean")


def wide(name: str) -> Column:
    return Column(name, priority=1)


NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")


def _name_and_age(obj: Any, age: Age) -> list[Cell]:
    return [obj.metadata.name, age(obj.metadata.creation_timestamp)]


NAME_AND_AGE: Final = Table((NAME, AGE), _name_and_age)
TEMPLATE: Final = (wide("Containers"), wide("Images"))

DESCRIPTIONS: Final = {
    "Mutations": "Number of changes that the policy makes.",
    "ParamKind": "The kind of the policy's parameters.",
    "ParamRef": "Namespace and name of the parameters.",
    "PolicyName": "The policy that is bound.",
    "Validations": "Number of rules of the policy.",
    "Webhooks": "Number of webhooks.",
    "Access Modes": "How nodes may mount the volume.",
    "Active": "Jobs that run now.",
    "Address": "The addresses at which it can be reached.",
    "AddressType": "The kind of addresses in this slice.",
    "Age": "Time since the object was created.",
    "Allocated": "Devices that claims hold.",
    "Allowed Disruptions": "Pods that may be evicted now.",
    "AllowVolumeExpansion": "Whether volumes of this class may grow.",
    "Attached": "Whether the volume is attached.",
    "Attacher": "The driver that attaches the volume.",
    "AttachRequired": "Whether volumes have to be attached before they are mounted.",
    "Available": "What can be used now.",
    "Capacity": "How much it holds.",
    "CIDRs": "Ranges of addresses.",
    "Claim": "The claim the volume is bound to.",
    "Class": "The class of the object.",
    "Cluster-IP": "The address inside the cluster.",
    "Completed": "Time since the request was answered.",
    "Completions": "Pods that succeeded, of those that have to.",
    "Condition": "Whether the request is approved, denied or issued.",
    "Container-Runtime": "The container runtime and its version.",
    "Containers": "Names of the containers.",
    "Controller": "The object this is a revision of.",
    "Count": "How often it happened.",
    "Created At": "When the object was created.",
    "Current": "Pods that exist.",
    "Data": "Number of entries.",
    "Desired": "Pods that should exist.",
    "DistinguisherMethod": "What separates the flows of this schema.",
    "Driver": "The driver of the devices.",
    "DriverName": "The driver this class is for.",
    "Drivers": "Number of storage drivers on the node.",
    "Duration": "How long the job ran, or has been running.",
    "Effect": "What the taint does to pods.",
    "Endpoints": "Addresses that are served.",
    "Error": "Why the component could not be asked.",
    "Errors": "Pools with a problem.",
    "Established": "Whether its objects are served.",
    "External-IP": "Addresses outside the cluster.",
    "First Seen": "Time since it happened first.",
    "Global-Default": "Whether pods without a class get this one.",
    "Group": "The group of its objects.",
    "Groups": "Groups in the binding.",
    "Handler": "The configuration of the container runtime.",
    "HandSize": "Queues that one flow can use.",
    "Holder": "Who holds the lease.",
    "Hosts": "Names of the hosts.",
    "Images": "Images of the containers.",
    "Internal-IP": "The address inside the cluster's network.",
    "IP": "The address of the pod.",
    "Kernel-Version": "The version of the kernel.",
    "Key": "The key of the taint.",
    "Kind": "The kind of its objects.",
    "Last Schedule": "Time since a job was last started.",
    "Last Seen": "Time since it happened last.",
    "Limit": "Use and bounds of limits.",
    "MatchingPrecedence": "Schemas with lower numbers are asked first.",
    "Max Unavailable": "How many pods may be missing.",
    "MaxPods": "The most replicas.",
    "Message": "What happened, in words.",
    "Min Available": "How many pods have to be there.",
    "MinPods": "The fewest replicas.",
    "MissingPL": "Whether its priority level does not exist.",
    "Modes": "The kinds of volumes the driver supports.",
    "Name": "The name of the object, unique among those of its kind in a namespace.",
    "Node": "The node it belongs to.",
    "Node Selector": "Labels a node must have.",
    "NodeName": "The node of the pod.",
    "NominalConcurrencyShares": "The share of requests that are handled at once.",
    "Nominated Node": "The node that is being made free for the pod.",
    "Object": "What it happened to.",
    "OS-Image": "The operating system.",
    "Parameters": "Parameters of the controller.",
    "ParentRef": "The object that uses the address.",
    "Pod Labels": "Labels of the template.",
    "Pod-Selector": "Labels that select the pods.",
    "PodInfoOnMount": "Whether the driver is told about the pod.",
    "PodName": "The pod.",
    "Pool": "The pool the devices belong to.",
    "Pools": "Pools that match the request.",
    "Port(s)": "Ports and protocols.",
    "Ports": "Ports of the endpoints.",
    "PreemptionPolicy": "Whether pods of this class may displace others.",
    "PriorityLevel": "The priority level of its requests.",
    "Provisioner": "Who makes volumes of this class.",
    "PV": "The volume to attach.",
    "QueueLengthLimit": "Requests that can wait in one queue.",
    "Queues": "Number of queues.",
    "Readiness Gates": "Gates that have opened, of those the pod has.",
    "Ready": "What is ready, of what there should be.",
    "Reason": "Why, in one word.",
    "Reclaim Policy": "What happens to the volume when its claim is deleted.",
    "ReclaimPolicy": "What happens to volumes when their claims are deleted.",
    "Reference": "The workload that is scaled.",
    "Replicas": "Pods that exist.",
    "Request": "Use and bounds of requests and counts.",
    "RequestedDuration": "How long the certificate should be valid.",
    "Requestor": "The user who asks.",
    "RequiresRepublish": "Whether the driver is called again from time to time.",
    "Resource": "The resource it is about.",
    "Restarts": "How often containers were restarted, and when last.",
    "Revision": "The number of the revision.",
    "Role": "The role that is granted.",
    "Roles": "The roles of the node.",
    "Schedule": "When jobs are started, in cron's notation.",
    "Scope": "Whether its objects are in namespaces.",
    "Selector": "Labels that select the pods.",
    "Service": "The service that serves it.",
    "ServiceAccountName": "The service account of the pod.",
    "ServiceAccounts": "Service accounts in the binding.",
    "ShortNames": "Shorter names for command lines.",
    "SignerName": "Who signs it.",
    "Source": "Who reported it.",
    "State": "Whether the claim is allocated and in use.",
    "Status": "The state it is in.",
    "StorageCapacity": "Whether the driver says how much space is left.",
    "StorageClass": "The storage class.",
    "StorageClassName": "The storage class.",
    "Subobject": "The part of the object it happened to.",
    "Suspend": "Whether no new jobs are started.",
    "Targets": "Current load and its target.",
    "TimeAdded": "Time since the taint was added.",
    "Timezone": "The time zone of the schedule.",
    "TokenRequests": "Audiences of the tokens the driver gets.",
    "Total": "All devices.",
    "Type": "The type.",
    "Unavailable": "Devices that cannot be used.",
    "UnverifiedUserAnnotations": "Annotations from the pod, not verified.",
    "Up-to-date": "Pods made from the current template.",
    "Users": "Users in the binding.",
    "Value": "The value.",
    "Version": "The version of the kubelet.",
    "Versions": "The versions that are served.",
    "Volume": "The volume the claim is bound to.",
    "VolumeAttributesClass": "The class of attributes the volume has.",
    "VolumeBindingMode": "When volumes are bound.",
    "VolumeMode": "Whether the volume is a file system or a block device.",
}
