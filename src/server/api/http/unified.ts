import { UnifiedPreviewSchema } from '../../../../gen/patchbay/v1/unified_pb.ts'
import type { UnifiedRequest, UnifiedSuccess } from '../../../engine/unified/index.ts'
import { invalidFields, type Violation } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import { environmentIdOf } from '../caller.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { encodeJson } from '../messages/codec.ts'
import { methodNotAllowed } from '../pipeline/errors.ts'
import { unsupportedMediaType } from '../pipeline/media-type.ts'
import { CALL_SCOPE, upstreamFailure } from '../services/proxy-calls.ts'
import { unifiedPreviewToProto } from '../services/unified.convert.ts'
import { callUnifiedMethod, dryRunUnified, type UnifiedCallDeps } from '../services/unified-calls.ts'
import { readProxyBody } from './proxy-request.ts'
import { sendJson, showLogEntry, showRateLimit } from './proxy-response.ts'
import type { HttpExchange, HttpRoute } from './routes.ts'
import {
  parseUnifiedPath,
  UNIFIED_PREFIX,
  UNIFIED_VERBS,
  type UnifiedPath,
  verbsOfUnifiedPath,
} from './unified-path.ts'
import { parseUnifiedQuery, UNIFIED_PARAMETERS } from './unified-query.ts'

/** Member of a body with fields of the third party, which are merged unmapped. */
const REMOTE_FIELDS = 'remote_fields'

/** `/unified/…`: calls of unified resources over plain HTTP. */
export function unifiedRoute(deps: UnifiedCallDeps): HttpRoute {
  return {
    verbs: UNIFIED_VERBS,
    verbsAt: (path) => verbsOfUnifiedPath(path.slice(UNIFIED_PREFIX.length)),
    path: UNIFIED_PREFIX,
    isPrefix: true,
    access: 'environment',
    scope: CALL_SCOPE,
    readsBody: 'after_authentication',
    singleParameters: UNIFIED_PARAMETERS,
    deadlineDefaultMs: DEFAULT_LIMITS.deadlineDefaultMs,
    async handle(exchange) {
      const { context } = exchange
      const { ref, id } = requireTarget(exchange)
      const { accountId, cursor, isDryRun, includeRaw, limit, ...options } = parseUnifiedQuery(exchange.query)
      context.logFields = { integrated_account_id: accountId, ...ref }
      const request = { ...options, ...(await readFields(exchange)), id, page: { limit, cursor } }
      const call = { environmentId: environmentIdOf(context), accountId, ref }
      if (isDryRun) {
        const preview = unifiedPreviewToProto(await dryRunUnified(deps, context, { ...call, request }))
        return sendJson(exchange, { dry_run: encodeJson(UnifiedPreviewSchema, preview) })
      }
      const signal = context.signal
      const outcome = await callUnifiedMethod(deps, context, { ...call, request: { ...request, signal } })
      showRateLimit(context, outcome.rateLimit)
      showLogEntry(context, outcome)
      if (outcome.kind !== 'ok') throw upstreamFailure(outcome, { ...ref }, { clock: deps.clock, includeRaw })
      await sendJson(exchange, answerJson(outcome, includeRaw))
    },
  }
}

function requireTarget({ request, path, context }: HttpExchange): Extract<UnifiedPath, { kind: 'target' }> {
  const verb = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
  const address = parseUnifiedPath(verb, path.slice(UNIFIED_PREFIX.length))
  if (address.kind === 'target') return address
  throw methodNotAllowed(context, address.allow)
}

/** @throws Failure INVALID_FIELD, UNSUPPORTED_MEDIA_TYPE, and those of `readProxyBody` */
async function readFields(exchange: HttpExchange): Promise<Pick<UnifiedRequest, 'body' | 'remoteFields'>> {
  const body = await readProxyBody(exchange)
  if (body.kind === 'bytes') {
    body.bytes.destroy()
    throw unsupportedMediaType(exchange.request.headers['content-type'], 'a unified resource is written as JSON')
  }
  if (body.value === undefined) return {}
  const violations: Violation[] = []
  const { [REMOTE_FIELDS]: remoteFields, ...fields } = objectFrom(body.value, 'body', violations)
  const read = {
    body: fields,
    remoteFields: remoteFields === undefined ? undefined : objectFrom(remoteFields, REMOTE_FIELDS, violations),
  }
  if (violations.length > 0) throw invalidFields(violations)
  return read
}

function objectFrom(value: Json, field: string, violations: Violation[]): JsonObject {
  if (isJsonObject(value)) return value
  violations.push({ field, description: 'must be a JSON object', rule: 'type' })
  return {}
}

/** The JSON answer of a call; members that do not apply are absent. */
function answerJson(outcome: UnifiedSuccess, includeRaw: boolean): Record<string, Json | undefined> {
  const { result, page, isPartial, ignoredFilters, warnings, raw } = outcome
  return {
    result,
    next_cursor: page?.nextCursor ?? undefined,
    prev_cursor: page?.previousCursor,
    stop_reason: page?.stopReason,
    is_partial: isPartial || undefined,
    ignored_filters: ignoredFilters.length === 0 ? undefined : ignoredFilters.map((filter) => ({ ...filter })),
    warnings: warnings.length === 0 ? undefined : warnings.map((warning) => ({ ...warning })),
    raw: includeRaw ? raw : undefined,
  }
}
