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
  'formats/response/charset.ts#decodeLoosely': 'decodeAnyText, and the lossy decoder of the platform',
  'secrets/key-usage.ts#readKeyUsages': 'reads rows that this service wrote',
  'secrets/key-usage.ts#checkProcesses': 'reads rows that this service wrote',
  'secrets/sql/data-key.ts#readOthersUnderLock': 'reads rows that this service wrote',
  'secrets/sql/rotation.ts#readRotationProgress': 'reads rows that this service wrote',
  'unified-calls/check-fixture.ts#checkFixtures': 'compares what parseFixture has read with a checked mapping',
  'unified-calls/check-fields.ts#checkFields': 'compares the settings of a checked mapping',
  'unified-calls/page-progress.ts#readProgress': 'reads what the service itself has stored, bounded then',
  'unified-calls/filters.ts#findFilterProblems': 'values that checkUnifiedQuery has read',
  'tool-servers/check-fields.ts#checkFields': 'fields that checkArguments has read',
  'unified-calls/check-findings.ts#findMappingProblems':
    'a part of it is checkMapping, the rest compares a checked mapping',
  'unified-calls/check-requests.ts#checkRequests': 'compares the settings of a checked mapping',
  'unified-calls/check-references.ts#checkReferences': 'compares the settings of a checked mapping',
  'unified-calls/fixture.ts#parseTriedCall': 'reads a part of what parseFixture reads, by the same schema',
  'api/services/webhook-filter.ts#checkFilterPaths': 'follows at most 100 paths that tryParseDotPath has read',
  'api/services/time-range.ts#checkRange': 'compares two times',
  'api/mcp-management/settings.ts#readManagementSettings': 'compares what readQuery read with a few words',
  'definitions/check-actions.ts#findActionProblems': 'a part of checkConfig',
  'definitions/check-placeholders.ts#findPlaceholderProblems': 'a part of checkConfig',
  'formats/schema-types.ts#findHeaderNameProblem': 'one anchored expression over a name',
  'formats/pagination/rules.ts#findParamNameProblem': 'a part of the schema that checkConfig parses with',
  'definitions/check-credentials.ts#findCredentialProblems': 'a part of checkConfig',
  'definitions/check-forms.ts#findFormProblems': 'a part of checkConfig',
  'definitions/check-hosts.ts#findHostProblems': 'a part of checkConfig',
  'definitions/config-values.ts#findAddressViolations':
    'parses addresses of a checked config with the URL parser of the platform',
  'definitions/findings.ts#findSchemaViolations': 'a part of checkConfig',
  'definitions/check-subscription.ts#findSubscriptionProblems': 'a part of checkConfig',
  'accounts/subscription-state.ts#readSubscriptionState': 'reads what this product stored',
  'accounts/stored-credentials.ts#parseStoredToken': 'reads what this product sealed',
  'accounts/check-identity.ts#checkIdentity': 'reads one path of a response that the proxy has decoded',
  'accounts/check-identity.ts#checkIdentityInContext': 'compares one value of the context',
  'accounts/request-token.ts#parseTokenError': 'reads what this product stored',
  'syncs/checkpoint.ts#readCheckpoint': 'reads what this product stored',
  'syncs/check-resources.ts#checkAgainstDefinition': 'looks up names that checkResources has bounded',
  'syncs/check-resources.ts#checkRequiredInput': 'looks up names that checkResources has bounded',
  'syncs/unified-nodes.ts#findUnifiedViolations':
    'looks up names that checkResources has bounded; readUnifiedQuery has a row',
  'api/http/proxy-path.ts#decodeSegment': 'a part of parseProxyPath and parseUnifiedPath',
  'syncs/job.ts#checkTriggerResources': 'looks up names that checkResources has bounded',
  'webhooks/headers.ts#checkHeaders': 'looks up names that the rules of the contract have bounded',
  'webhooks/headers.ts#checkHeadersOfNewOrigin': 'looks up names that the rules of the contract have bounded',
  'schedules/trigger-schedule.ts#checkCron': 'passes its text to checkCronExpression',
  'api/rest/router.ts#parsePathPattern': 'reads patterns of the contract',
  'api/listener/protocol-detection.ts#findTlsProblem': 'reads the keys that the operator gives',
  'api/pipeline/body.ts#readBody': 'collects bytes up to a limit',
  'api/pipeline/admission.ts#readCallerBody': 'collects bytes up to a limit',
  'expressions/sandbox/protocol.ts#decodeResponse': 'reads lines of the own sandbox',
  'expressions/sandbox/dates.ts#parseDate': 'anchored expressions over a short text',
  'expressions/sandbox/texts.ts#parseUrl': 'the parser of the platform over a short text',
  'expressions/reads.ts#pickInputKeys': 'picks keys',
  'formats/pagination/rules.ts#findEndlessProblem': 'compares settings of a checked definition',
  'formats/signature/jwt-keys.ts#findKeyProblem': 'compares settings',
  'formats/signature/signed-content.ts#findTimestampProblem': 'compares settings',
  'formats/signature/signed-content.ts#checkAge': 'compares numbers',
  'proxy/rate-limit-headers.ts#readRateLimit': 'reads headers by expressions',
  'proxy/decode-response.ts#decodeResponse': 'chooses a decoder of formats/response, which have rows',
  'formats/response/response.ts#decodeUtf8': 'a decoder of the platform',
  'formats/credential/token-response.ts#readStandardTokenResponse': 'picks fields of a parsed response',
  'formats/credential/token-response.ts#readTokenResponse': 'picks fields of a parsed response',
  'formats/credential/normalise-field.ts#readKeyFile': 'bounds the length; parseJson has a row',
  'daemon-runner/store-problem.ts#findPostgresProblem': 'looks codes and words up in the error of the own store',
  'egress/connect-to.ts#parseConnectTo': 'reads a setting of the operator',
  'egress/request.ts#parseAllowedUrl': 'the URL parser of the platform and the address policy, which has rows',
  'api/services/values.convert.ts#parseEtag': 'one anchored expression over a short text',
  'api/http/proxy-request.ts#readProxyBody': 'collects bytes up to a limit; parseJson has a row',
  'database/keyset-pages.ts#readPageSize': 'compares numbers',
  'definitions/webhook-answer.ts#findAnswerBodyProblem': 'counts the bytes of a value of a checked definition',
  'definitions/webhook-answer.ts#findAnswerHeadersProblem':
    'looks up names; two anchored expressions without alternatives',
  'inbound-webhooks/handshake.ts#readHandshake': 'picks fields of what an expression returned, which is bounded',
  'inbound-webhooks/mapping.ts#readItems': 'picks fields of what an expression returned, and counts the items first',
  'inbound-webhooks/mapping.ts#readLookupValues': 'picks values of what an expression returned, which is bounded',
}
