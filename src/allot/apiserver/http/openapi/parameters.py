"""Parameters of requests: what they are called, what they hold, what they do."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Parameter(NamedTuple):
    """A parameter in the query of a URL, or in its path."""

    name: str
    description: str
    type: str = "string"
    place: str = "query"

    def as_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "schema": {"type": self.type, "uniqueItems": True},
        }
        if self.place == "path":
            made["required"] = True
        return made


PRETTY: Final = Parameter("pretty", "If 'true', the answer is indented for people to read.")
NAMESPACE: Final = Parameter("namespace", "The namespace of the objects.", place="path")

CONTINUE: Final = Parameter(
    "continue",
    "The token from the metadata of the previous page. All pages show the state of the first one. A token that is"
    " too old is answered with 410; the list must then be read from its start.",
)
FIELD_SELECTOR: Final = Parameter(
    "fieldSelector",
    "Only objects whose fields have these values, such as metadata.name=x. Each kind has few fields to select by.",
)
LABEL_SELECTOR: Final = Parameter("labelSelector", "Only objects whose labels match this selector.")
LIMIT: Final = Parameter(
    "limit",
    "The most objects in one answer. If there are more, the answer's metadata has a token for `continue`.",
    "integer",
)
RESOURCE_VERSION: Final = Parameter(
    "resourceVersion",
    "For a list, how recent the answer must be; for a watch, the version after which changes are sent. Not set"
    " means the most recent state, 0 any state.",
)
RESOURCE_VERSION_MATCH: Final = Parameter(
    "resourceVersionMatch",
    "How resourceVersion is meant: Exact for exactly this state, NotOlderThan for it or a newer one.",
)
SEND_INITIAL_EVENTS: Final = Parameter(
    "sendInitialEvents",
    "Start a watch with all objects there are, followed by a bookmark with the annotation"
    " k8s.io/initial-events-end. Needs resourceVersionMatch=NotOlderThan.",
    "boolean",
)
TIMEOUT: Final = Parameter(
    "timeoutSeconds", "How long the call may take, or the watch may last.", "integer"
)
ALLOW_BOOKMARKS: Final = Parameter(
    "allowWatchBookmarks",
    "Send events of type BOOKMARK now and then, which only say how far the watch has come.",
    "boolean",
)
WATCH: Final = Parameter(
    "watch", "Send changes as they happen, one JSON object after the other.", "boolean"
)
DRY_RUN: Final = Parameter(
    "dryRun", "If 'All', the request is checked and answered in full, but nothing is stored."
)
FIELD_MANAGER: Final = Parameter(
    "fieldManager",
    "Who makes the change, for the record of field owners: up to 128 printable characters.",
)
FIELD_VALIDATION: Final = Parameter(
    "fieldValidation",
    "What to do about unknown and duplicate fields. Ignore drops them, Warn (the default) drops them and says so in"
    " Warning headers, Strict refuses the request.",
)
FORCE: Final = Parameter(
    "force", "Take over fields that others own. For apply patches only.", "boolean"
)
GRACE_PERIOD: Final = Parameter(
    "gracePeriodSeconds",
    "How long the object may take to end. 0 deletes it at once; not set means the default of its kind.",
    "integer",
)
ORPHAN_DEPENDENTS: Final = Parameter(
    "orphanDependents", "The old form of propagationPolicy; set only one of the two.", "boolean"
)
PROPAGATION_POLICY: Final = Parameter(
    "propagationPolicy",
    "What happens to objects this one owns. Orphan leaves them, Background deletes them later, Foreground deletes"
    " them before the object itself.",
)

_SELECT: Final = (
    CONTINUE, FIELD_SELECTOR, LABEL_SELECTOR, LIMIT, RESOURCE_VERSION, RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS, TIMEOUT,
)  # fmt: skip
LIST: Final = (*_SELECT, ALLOW_BOOKMARKS, WATCH)
WRITE: Final = (DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION)
DELETE: Final = (DRY_RUN, GRACE_PERIOD, ORPHAN_DEPENDENTS, PROPAGATION_POLICY)
DELETE_COLLECTION: Final = (*_SELECT, *DELETE)


def name_of(kind: str) -> Parameter:
    return Parameter("name", f"The name of the {kind}.", place="path")
