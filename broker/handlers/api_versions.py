"""ApiVersions: what this node offers, and whether it is the one that the client means (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations

import re

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import API_VERSIONS_KEY, HANDLER_MODULES, EncodedResponse, handles
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

#: Kafka 4.4's: clients that look at it learn that topic ids, KIP-951 and the like are there. Other features of Kafka's
#: (``group.version``, ``transaction.version`` …) aren't named, since clients choose their protocols by them.
METADATA_VERSION = "metadata.version"
LEAST_METADATA_LEVEL = 7
METADATA_LEVEL = 33

FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_EXPECTATIONS = 5
UNCHECKED_NODE = -1

#: What Kafka takes as the name or version of a client's software (KIP-511).
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def _offered(api_key: int) -> ApiVersion:
    api = API_BY_KEY[api_key]
    return ApiVersion(api_key=api_key, min_version=api.advertised_min_version, max_version=api.max_version)


#: All that has a handler, and nothing else.
OFFERED = [_offered(api_key) for api_key in sorted(HANDLER_MODULES)]
_SUPPORTED_FEATURES = [
    SupportedFeatureKey(name=METADATA_VERSION, min_version=LEAST_METADATA_LEVEL, max_version=METADATA_LEVEL)
]
_FINALIZED_FEATURES = [
    FinalizedFeatureKey(name=METADATA_VERSION, max_version_level=METADATA_LEVEL, min_version_level=METADATA_LEVEL)
]


@handles(ApiVersionsRequest)
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse | EncodedResponse:
    """Name each API with its versions; refuse odd software names, and clients that mean another cluster or node."""
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.software = f"{name} {version}"
    if context.api_version >= FIRST_VERSION_WITH_EXPECTATIONS:
        error = _unmet_expectation(request, context)
        if error is not ErrorCode.NONE:
            return ApiVersionsResponse(error_code=error)
    answers, key = context.node.encoded_answers, (ApiVersionsRequest, context.api_version)
    return answers.get(key) or answers.keep(key, _encoded(context))


def _encoded(context: Context) -> EncodedResponse:
    """The answer to every client that asks in this version, until the image moves on."""
    response = ApiVersionsResponse(
        api_keys=OFFERED,
        supported_features=_SUPPORTED_FEATURES,
        finalized_features=_FINALIZED_FEATURES,
        finalized_features_epoch=context.node.image.applied_index,
    )
    return EncodedResponse(codec(ApiVersionsResponse, context.api_version).encode(response))


def unsupported_version() -> ApiVersionsResponse:
    """For a version that isn't known here: only the range of this very API, in the oldest form (KIP-511)."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_offered(API_VERSIONS_KEY)])


def _unmet_expectation(request: ApiVersionsRequest, context: Context) -> ErrorCode:
    """A client that knows where it believes itself to be says both, cluster and node (KIP-1242)."""
    if request.cluster_id is None and request.node_id == UNCHECKED_NODE:
        return ErrorCode.NONE
    if request.cluster_id is None or request.node_id == UNCHECKED_NODE:
        return ErrorCode.INVALID_REQUEST
    if (request.cluster_id, request.node_id) != (context.node.cluster_id, context.node.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE
