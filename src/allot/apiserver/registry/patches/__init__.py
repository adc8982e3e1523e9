"""Patches: a document and the bytes of a patch in, the patched document out.

Documents are decoded JSON. None of these functions changes its input; what a patch leaves alone is shared
between input and output. A document may carry `msgspec.Raw` in place of any value: bytes that stay as they
are unless a patch reaches into them.
"""

from allot.apiserver.registry.patches.documents import decode_document
from allot.apiserver.registry.patches.errors import PatchError
from allot.apiserver.registry.patches.json_patches import (
    UnfitOperationError,
    apply_operations,
    json_patch,
)
from allot.apiserver.registry.patches.merge_patches import merge_patch
from allot.apiserver.registry.patches.strategic import strategic_merge_patch
from allot.apiserver.registry.patches.touched_parts import touched_parts

__all__ = [
    "PatchError",
    "UnfitOperationError",
    "apply_operations",
    "decode_document",
    "json_patch",
    "merge_patch",
    "strategic_merge_patch",
    "touched_parts",
]
