import type { Violation } from '../../foundation/base/index.ts'
import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import { type CompiledExpression, compileExpression, evaluateInline } from '../expressions/evaluator.ts'
import { isTruthy } from '../formats/format.ts'
import { resolvedSchema } from './config-schema.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { listFields } from './schema-walk.ts'

/**
 * What a definition says about responses that its author may not mean: error expressions that forget a status, and records
 * without an identifier. A definition with warnings is valid.
 *
 * @param path prefix of the reported fields: `config`
 */
export function findResponseWarnings(config: JsonObject, path: string): Violation[] {
  return toViolations([...findForgottenStatuses(config), ...findRecordsWithoutId(config)], path)
}

/** Answers that are errors for most APIs, each with every body below. */
const STATUSES = [400, 401, 403, 404, 422, 500] as const
const BODIES: readonly Json[] = [null, {}, { error: 'x' }, { error: { message: 'x' } }, { message: 'x' }, [], 'x']

/**
 * Expressions that find no error in an answer whose status says that it is one: `/proxy` passes it on as a success. Only
 * expressions that can be evaluated in this process are tried.
 */
function findForgottenStatuses(config: JsonObject): ConfigFinding[] {
  const known = new Map<string, readonly number[]>()
  return listFields(resolvedSchema, config).flatMap(({ role, value, path: at }) => {
    if (role.kind !== 'expression' || at.at(-1) !== 'error_expression' || typeof value !== 'string') return []
    const forgotten = known.get(value) ?? forgottenStatuses(value)
    known.set(value, forgotten)
    if (forgotten.length === 0) return []
    const description = `finds no error in answers of status ${forgotten.join(', ')} with an empty or unexpected body, which are passed on as successes: end it with \`: status >= 400 ? {"status": status}\``
    return [{ at, description, rule: 'error_expression.forgets_status' }]
  })
}

function forgottenStatuses(expression: string): readonly number[] {
  const compiled = compileExpression(expression)
  return STATUSES.filter((status) => BODIES.some((body) => findsNothing(compiled, status, body)))
}

function findsNothing(expression: CompiledExpression, status: number, body: Json): boolean {
  const response = { status, headers: {}, body }
  const input = { response, ...response, data: body, env: {}, environment_variables: {} }
  const result = evaluateInline(expression, input)
  return result !== undefined && !isJsonObject(result.value) && !isTruthy(result.value)
}

/** Lists whose example holds records without `id`, where no `id_path` says what identifies them. */
function findRecordsWithoutId({ resources }: JsonObject): ConfigFinding[] {
  if (!isJsonObject(resources)) return []
  return Object.entries(resources).flatMap(([resource, methods]) =>
    Object.entries(isJsonObject(methods) ? methods : {}).flatMap(([name, method]) => {
      if (!isJsonObject(method) || !isList(name, method) || method.id_path !== undefined) return []
      const bare = exampleRecords(method).find((record) => isJsonObject(record) && (record.id ?? null) === null)
      if (bare === undefined) return []
      const description =
        'is not set, and records of the example have no id: syncs know a record by it, and store one that changes as another'
      return [{ at: ['resources', resource, name, 'id_path'], description, rule: 'id_path.missing' }]
    }),
  )
}

function isList(name: string, { pagination }: JsonObject): boolean {
  return name === 'list' || isJsonObject(pagination)
}

/** The records of the example of a response; none where they are not known. */
function exampleRecords({ examples, response_path: path }: JsonObject): readonly Json[] {
  const body = isJsonObject(examples) ? (examples.response ?? null) : null
  const records = typeof path === 'string' ? selectAt(body, path) : body
  return Array.isArray(records) ? records : []
}

function selectAt(body: Json, path: string): Json | undefined {
  if (!path.startsWith('$')) return getAtPath(body, parseDotPath(path))
  return evaluateInline(path, isJsonObject(body) ? body : { body })?.value
}
