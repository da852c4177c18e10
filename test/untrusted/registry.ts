/**
 * Every reader of bytes and texts that others wrote: answers of third parties, requests, definitions, settings.
 *
 * `npm run faults stall` feeds each of them its attacks at their full length, `npm run fuzz` mutations of its seeds, and
 * `registry.test.ts` fails for a reader in `src` that has no row here.
 */
import type { Reader } from './reader.ts'
import { REQUEST_READERS } from './request-readers.ts'
import { UPSTREAM_READERS } from './upstream-readers.ts'

export const READERS: readonly Reader[] = [...UPSTREAM_READERS, ...REQUEST_READERS]

/** Readers without a row of their own, and why none is needed. */
export const COVERED_OTHERWISE: Readonly<Record<string, string>> = {
  'definition/check-actions.ts#findActionProblems': 'a part of checkConfig',
  'definition/check-texts.ts#findTextProblems': 'a part of checkConfig',
  'formats/vocabulary.ts#findHeaderNameProblem': 'one anchored expression over a name',
  'formats/pagination/rules.ts#findPlacedNameProblem': 'a part of the schema that checkConfig parses with',
  'definition/findings.ts#findSchemaViolations': 'a part of checkConfig',
  'accounts/tokens/stored-token.ts#readToken': 'reads what this product sealed',
  'accounts/tokens/token-failure.ts#readRefusal': 'reads what this product stored',
  'sync/checkpoint.ts#readCheckpoint': 'reads what this product stored',
  'sync/check-definition.ts#checkAgainstDefinition': 'looks up names that checkResources has bounded',
  'sync/job.ts#checkTriggerResources': 'looks up names that checkResources has bounded',
  'schedule/triggers/create-trigger.ts#checkCron': 'hands its text to checkCronExpression',
  'api/rest/template.ts#parseTemplate': 'reads patterns of the contract',
  'api/listener/front.ts#findTlsProblem': 'reads the keys that the operator gives',
  'api/stages/body.ts#readBody': 'collects bytes up to a limit',
  'expression/jsonata/sandbox/protocol.ts#readAnswer': 'reads lines of the own sandbox',
  'expression/jsonata/sandbox/dates.ts#parseDate': 'runs in the sandbox, which is killed after its time',
  'expression/jsonata/roots-read.ts#readPart': 'picks keys',
  'formats/pagination/rules.ts#findEndlessProblem': 'compares settings of a checked definition',
  'formats/signature/jwt-keys.ts#findKeyProblem': 'compares settings',
  'formats/signature/timestamp.ts#findTimestampProblem': 'compares settings',
  'formats/signature/timestamp.ts#checkAge': 'compares numbers',
  'proxy/rate-limit.ts#readRateLimit': 'reads headers by expressions',
}
