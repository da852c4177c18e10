/**
 * Every reader of bytes and texts that others wrote: answers of third parties, requests, definitions, settings.
 *
 * `npm run faults stall` feeds each of them its attacks at their full length, `npm run fuzz` mutations of its seeds, and
 * `registry.test.ts` fails for a reader in `src` that has no row here.
 */

import { INBOUND_READERS } from './inbound-readers.ts'
import type { Reader } from './reader.ts'
import { REQUEST_READERS } from './request-readers.ts'
import { SIGNATURE_READERS } from './signature-readers.ts'
import { TOOL_READERS } from './tool-readers.ts'
import { UNIFIED_READERS } from './unified-readers.ts'
import { UPSTREAM_READERS } from './upstream-readers.ts'

export const READERS: readonly Reader[] = [
  ...UPSTREAM_READERS,
  ...SIGNATURE_READERS,
  ...INBOUND_READERS,
  ...REQUEST_READERS,
  ...UNIFIED_READERS,
  ...TOOL_READERS,
]

/** Readers without a row of their own, and why none is needed. */
export const COVERED_OTHERWISE: Readonly<Record<string, string>> = {
  'engine/formats/response/charset.ts#decodeLoosely': 'decodeAnyText, and the lossy decoder of the platform',
  'foundation/secrets/key-usage.ts#readKeyUsages': 'reads rows that this service wrote',
  'foundation/secrets/key-usage.ts#checkProcesses': 'reads rows that this service wrote',
  'foundation/secrets/sql/data-key.ts#readOthersUnderLock': 'reads rows that this service wrote',
  'foundation/secrets/sql/rotation.ts#readRotationProgress': 'reads rows that this service wrote',
  'engine/unified/check-fixture.ts#checkFixtures': 'compares what parseFixture has read with a checked mapping',
  'engine/unified/check-fields.ts#checkFields': 'compares the settings of a checked mapping',
  'engine/unified/page-progress.ts#readProgress': 'reads what the service itself has stored, bounded then',
  'engine/unified/filters.ts#findFilterProblems': 'values that checkUnifiedQuery has read',
  'tools/servers/check-fields.ts#checkFields': 'fields that checkArguments has read',
  'engine/unified/check-findings.ts#findMappingProblems':
    'a part of it is checkMapping, the rest compares a checked mapping',
  'engine/unified/check-requests.ts#checkRequests': 'compares the settings of a checked mapping',
  'engine/unified/check-references.ts#checkReferences': 'compares the settings of a checked mapping',
  'engine/unified/fixture.ts#parseTriedCall': 'reads a part of what parseFixture reads, by the same schema',
  'server/api/services/webhook-filter.ts#checkFilterPaths': 'follows at most 100 paths that tryParseDotPath has read',
  'server/api/services/time-range.ts#checkRange': 'compares two times',
  'server/api/mcp-management/settings.ts#readManagementSettings': 'compares what readQuery read with a few words',
  'engine/definitions/check-actions.ts#findActionProblems': 'a part of checkConfig',
  'engine/definitions/check-placeholders.ts#findPlaceholderProblems': 'a part of checkConfig',
  'engine/formats/schema-types.ts#findHeaderNameProblem': 'one anchored expression over a name',
  'engine/formats/pagination/rules.ts#findParamNameProblem': 'a part of the schema that checkConfig parses with',
  'engine/definitions/check-credentials.ts#findCredentialProblems': 'a part of checkConfig',
  'engine/definitions/check-forms.ts#findFormProblems': 'a part of checkConfig',
  'engine/definitions/check-hosts.ts#findHostProblems': 'a part of checkConfig',
  'engine/definitions/config-values.ts#findAddressViolations':
    'parses addresses of a checked config with the URL parser of the platform',
  'engine/definitions/findings.ts#findSchemaViolations': 'a part of checkConfig',
  'engine/definitions/check-subscription.ts#findSubscriptionProblems': 'a part of checkConfig',
  'platform/accounts/subscription-state.ts#readSubscriptionState': 'reads what this product stored',
  'platform/accounts/stored-credentials.ts#parseStoredToken': 'reads what this product sealed',
  'platform/accounts/check-identity.ts#checkIdentity': 'reads one path of a response that the proxy has decoded',
  'platform/accounts/check-identity.ts#checkIdentityInContext': 'compares one value of the context',
  'platform/accounts/request-token.ts#parseTokenError': 'reads what this product stored',
  'sync/jobs/checkpoint.ts#readCheckpoint': 'reads what this product stored',
  'sync/jobs/check-resources.ts#checkAgainstDefinition': 'looks up names that checkResources has bounded',
  'sync/jobs/check-resources.ts#checkRequiredInput': 'looks up names that checkResources has bounded',
  'sync/jobs/unified-nodes.ts#findUnifiedViolations':
    'looks up names that checkResources has bounded; readUnifiedQuery has a row',
  'server/api/http/proxy-path.ts#decodeSegment': 'a part of parseProxyPath and parseUnifiedPath',
  'sync/jobs/job.ts#checkTriggerResources': 'looks up names that checkResources has bounded',
  'webhooks/outbound/headers.ts#checkHeaders': 'looks up names that the rules of the contract have bounded',
  'webhooks/outbound/headers.ts#checkHeadersOfNewOrigin': 'looks up names that the rules of the contract have bounded',
  'sync/schedules/trigger-schedule.ts#checkCron': 'passes its text to checkCronExpression',
  'server/api/rest/router.ts#parsePathPattern': 'reads patterns of the contract',
  'server/api/listener/protocol-detection.ts#findTlsProblem': 'reads the keys that the operator gives',
  'server/api/pipeline/body.ts#readBody': 'collects bytes up to a limit',
  'server/api/pipeline/admission.ts#readCallerBody': 'collects bytes up to a limit',
  'engine/expressions/sandbox/protocol.ts#decodeResponse': 'reads lines of the own sandbox',
  'engine/expressions/sandbox/dates.ts#parseDate': 'anchored expressions over a short text',
  'engine/expressions/sandbox/texts.ts#parseUrl': 'the parser of the platform over a short text',
  'engine/expressions/input-analysis.ts#pickInputKeys': 'picks keys',
  'engine/formats/pagination/rules.ts#findEndlessProblem': 'compares settings of a checked definition',
  'engine/formats/signature/jwt-keys.ts#findKeyProblem': 'compares settings',
  'engine/formats/signature/signed-content.ts#findTimestampProblem': 'compares settings',
  'engine/formats/signature/signed-content.ts#checkAge': 'compares numbers',
  'engine/proxy/rate-limit-headers.ts#readRateLimit': 'reads headers by expressions',
  'engine/proxy/decode-response.ts#decodeResponse': 'chooses a decoder of formats/response, which have rows',
  'engine/formats/response/response.ts#decodeUtf8': 'a decoder of the platform',
  'engine/formats/credential/token-response.ts#readStandardTokenResponse': 'picks fields of a parsed response',
  'engine/formats/credential/token-response.ts#readTokenResponse': 'picks fields of a parsed response',
  'engine/formats/credential/normalise-field.ts#readKeyFile': 'bounds the length; parseJson has a row',
  'cli/daemon/store-problem.ts#findPostgresProblem': 'looks codes and words up in the error of the own store',
  'foundation/egress/connect-to.ts#parseConnectTo': 'reads a setting of the operator',
  'foundation/egress/request.ts#parseAllowedUrl':
    'the URL parser of the platform and the address policy, which has rows',
  'server/api/services/values.convert.ts#parseEtag': 'one anchored expression over a short text',
  'server/api/http/proxy-request.ts#readProxyBody': 'collects bytes up to a limit; parseJson has a row',
  'foundation/database/keyset-pages.ts#readPageSize': 'compares numbers',
  'engine/definitions/webhook-answer.ts#findAnswerBodyProblem': 'counts the bytes of a value of a checked definition',
  'engine/definitions/webhook-answer.ts#findAnswerHeadersProblem':
    'looks up names; two anchored expressions without alternatives',
  'webhooks/inbound/handshake.ts#readHandshake': 'picks fields of what an expression returned, which is bounded',
  'webhooks/inbound/mapping.ts#readItems': 'picks fields of what an expression returned, and counts the items first',
  'webhooks/inbound/mapping.ts#readLookupValues': 'picks values of what an expression returned, which is bounded',
}
