import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { RequestPreview } from '../proxy/dry-run.ts'
import { buildCall, prepareRequest } from './build-call.ts'
import { assertCleared } from './cleared-fields.ts'
import { mapAnswer } from './map-answer.ts'
import type { MappedRecords } from './map-records.ts'
import type { FieldTrace, IgnoredFilter, MappingWarning } from './mapping.ts'
import type { UnifiedDependencies, UnifiedPreviewRequest, UnifiedTarget } from './request.ts'
import { runStepsOf, withResults } from './run-steps.ts'

/** Dry run of a unified method: the masked request of the provider, and a sample response mapped. */
export interface UnifiedPreview extends RequestPreview {
  readonly ignoredFilters: readonly IgnoredFilter[]
  readonly warnings: readonly MappingWarning[]
  /** Names of steps that would send a request of their own; they are not run, `$before.<name>` is absent. */
  readonly skippedSteps: readonly string[]
  /** The records of the sample response; absent without one, or when its outcome is an error. */
  readonly mapped: readonly JsonObject[] | undefined
  /** Of each record. */
  readonly traces: readonly (readonly FieldTrace[])[] | undefined
  /** Outgoing body as JSON, before it is encoded. */
  readonly providerBody: Json | undefined
}

/**
 * The request that a unified call would send, secrets masked, and how a sample response would be mapped. Nothing is sent.
 *
 * @throws Failure as `callUnified`, except those of sending
 */
export async function previewUnified(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedPreviewRequest,
): Promise<UnifiedPreview> {
  const prepared = prepareRequest(deps, target, request)
  const before = await runStepsOf('before', deps, target, request, prepared, undefined, { isDryRun: true })
  const done = before.kind === 'done' ? before : { results: {}, skipped: [] }
  const ready = withResults(prepared, { before: done.results })
  if (done.skipped.length === 0) await assertCleared(deps, target, request, ready)
  const call = await buildCall(deps, target, request, ready)
  const preview = await deps.proxy.preview(target.plan, target.access, { ...call, sample: request.sample })
  const mapped = await mapSample(deps, target, request, preview, ready.scope)
  const requests = target.mapping.request.after.filter(({ work }) => work.type === 'request')
  return {
    ...preview,
    ignoredFilters: prepared.ignored,
    warnings: prepared.warnings,
    skippedSteps: [...done.skipped, ...requests.map(({ name }) => name)],
    mapped: mapped?.records,
    traces: mapped?.traces,
    providerBody: call.body,
  }
}

async function mapSample(
  deps: UnifiedDependencies,
  { mapping }: UnifiedTarget,
  request: UnifiedPreviewRequest,
  { outcome }: RequestPreview,
  scope: Parameters<typeof mapAnswer>[3],
): Promise<MappedRecords | undefined> {
  if (outcome?.kind !== 'ok') return undefined
  return await mapAnswer(deps, mapping, outcome.result, scope, { ...request, trace: true })
}
