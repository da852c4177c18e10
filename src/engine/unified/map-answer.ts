import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { UpstreamErrorOutcome } from '../proxy/outcome.ts'
import { evaluationOf, type PreparedRequest } from './build-call.ts'
import { type MappedRecords, type MappingOptions, mapRecords } from './map-records.ts'
import type { MappingScope } from './mapping.ts'
import { evaluateMappingExpression } from './mapping-expression.ts'
import type { MappingPlan } from './mapping-plan.ts'
import type { UnifiedDependencies } from './request.ts'
import { toInteger } from './scalar-values.ts'

/** The records of an answer, mapped. @throws Failure of `mapRecords`, EXPRESSION_FAILED of `items` */
export async function mapAnswer(
  deps: Pick<UnifiedDependencies, 'evaluator'>,
  mapping: MappingPlan,
  result: Json,
  scope: MappingScope,
  options: MappingOptions,
): Promise<MappedRecords> {
  const { items } = mapping
  const selected =
    items === undefined
      ? result
      : await evaluateMappingExpression(evaluationOf(deps, scope), items, { result }, 'response.items')
  return await mapRecords(deps, mapping, recordsOf(selected ?? null), scope, options)
}

function recordsOf(result: Json): readonly Json[] {
  if (Array.isArray(result)) return result
  return result === null || result === '' ? [] : [result]
}

const ERROR_STATUS_MIN = 400
const ERROR_STATUS_MAX = 599

/**
 * The error of the provider as the mapping tells it: status, message, and in its metadata `code` and `fields`.
 *
 * @throws Failure EXPRESSION_FAILED
 */
export async function mapError(
  deps: Pick<UnifiedDependencies, 'evaluator'>,
  mapping: MappingPlan,
  outcome: UpstreamErrorOutcome,
  { scope }: Pick<PreparedRequest, 'scope'>,
): Promise<UpstreamErrorOutcome> {
  if (mapping.error === undefined) return outcome
  const { status, message, body, metadata } = outcome
  const root = { status, message, body, metadata }
  const value = await evaluateMappingExpression(evaluationOf(deps, scope), mapping.error, root, 'error')
  return value !== undefined && isJsonObject(value) ? withError(outcome, value) : outcome
}

function withError(outcome: UpstreamErrorOutcome, told: JsonObject): UpstreamErrorOutcome {
  const status = Number(toInteger(told.status ?? null) ?? 0)
  const { code, message, fields } = told
  return {
    ...outcome,
    status: status >= ERROR_STATUS_MIN && status <= ERROR_STATUS_MAX ? status : outcome.status,
    message: typeof message === 'string' && message !== '' ? message : outcome.message,
    metadata: {
      ...outcome.metadata,
      ...(code === undefined || code === null ? {} : { code }),
      ...(fields === undefined || fields === null ? {} : { fields }),
    },
  }
}
