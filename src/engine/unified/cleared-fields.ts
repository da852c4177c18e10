import { Failure, invalidFields } from '../../foundation/base/index.ts'
import { canonicalJson, formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { sendsRecord } from '../definitions/method-kinds.ts'
import { buildCall, type PreparedRequest } from './build-call.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { runStepsOf, stepRunOf, withResults } from './run-steps.ts'
import type { ObjectNode } from './schema-node.ts'
import { isWrite, stepWrites } from './steps.ts'

type FieldPath = readonly string[]

/** What a body makes a mapping send that writes; `undefined`: its expressions fail. */
type Writes = JsonObject | undefined

/**
 * Lost update: checks that each field that an update empties (`null`, `""`, `[]`, `{}`) has an effect on what is sent. Many
 * expressions leave out what is empty, and the provider then keeps its value.
 *
 * @param prepared with the results of the steps before the call
 * @throws Failure INVALID_FIELD naming the fields without effect
 */
export async function assertCleared(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  prepared: PreparedRequest,
): Promise<void> {
  const { method, resource } = target.mapping
  // A create that leaves an empty field out has the same result.
  if (!sendsRecord(method) || method === 'create') return
  const { body, root } = prepared
  const cleared = listCleared(resource.node, body.unified, [])
  if (cleared.length === 0) return
  const writesOf = (of: JsonObject) => findWrites(deps, target, request, prepared, of)
  const writes = await writesOf(root)
  const lost: FieldPath[] = []
  for (const path of cleared) if (!(await hasEffect(writesOf, writes, root, path))) lost.push(path)
  if (lost.length === 0) return
  const description = 'has no effect: the mapping of this integration cannot clear it'
  throw invalidFields(lost.map((path) => ({ field: formatDotPath(path, 'body'), description, rule: 'no_effect' })))
}

/** Paths of the empty values of a body. Lists and references are values as a whole. */
function listCleared({ properties }: ObjectNode, value: JsonObject, path: FieldPath): readonly FieldPath[] {
  return Object.entries(value).flatMap(([name, item]) => {
    const at = [...path, name]
    if (isEmpty(item)) return [at]
    const node = properties.get(name)
    return node?.kind === 'object' && !node.isReference && isJsonObject(item) ? listCleared(node, item, at) : []
  })
}

function isEmpty(value: Json): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

/**
 * Whether the field changes what the body writes. Two fields that are written to one place, both empty, change it only together:
 * what the field writes alone is then in what is sent.
 */
async function hasEffect(
  writesOf: (root: JsonObject) => Promise<Writes>,
  writes: Writes,
  root: JsonObject,
  path: FieldPath,
): Promise<boolean> {
  if (writes === undefined) return true
  if (Object.keys(writes).length === 0) return false
  const others = await writesOf(without(root, path))
  if (others === undefined || canonicalJson(others) !== canonicalJson(writes)) return true
  const [alone, nothing] = [await writesOf(only(root, path)), await writesOf({})]
  return alone === undefined || nothing === undefined || isKept(alone, nothing, writes)
}

/** Whether something that `value` has beyond `base` is in `whole` too, with whatever value. */
function isKept(value: Json, base: Json | undefined, whole: Json | undefined): boolean {
  if (whole === undefined || (base !== undefined && canonicalJson(value) === canonicalJson(base))) return false
  if (!isJsonObject(value) || !isJsonObject(whole)) return true
  const below = isJsonObject(base ?? null) ? (base as JsonObject) : {}
  return Object.entries(value).some(([key, item]) => isKept(item, below[key], whole[key]))
}

function without(root: JsonObject, [name = '', ...rest]: FieldPath): JsonObject {
  const { [name]: value = null, ...others } = root
  return rest.length > 0 && isJsonObject(value) ? { ...others, [name]: without(value, rest) } : others
}

function only(root: JsonObject, [name = '', ...rest]: FieldPath): JsonObject {
  const value = root[name] ?? null
  return { [name]: rest.length > 0 && isJsonObject(value) ? only(value, rest) : value }
}

/** What the call and the steps around it would send for another body, read with the same results of requests. */
async function findWrites(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  prepared: PreparedRequest,
  root: JsonObject,
): Promise<Writes> {
  const { before, after } = target.mapping.request
  const mapped = { ...request, remoteFields: undefined }
  const other = { ...prepared, root, scope: { ...prepared.scope, body: root } }
  const answers = Object.entries(prepared.scope.before ?? {}).filter(([name]) =>
    before.some((step) => step.name === name && step.work.type === 'request'),
  )
  const results = Object.fromEntries(answers)
  try {
    const ran = await runStepsOf('before', deps, target, mapped, other, undefined, { isDryRun: true, results })
    const ready = ran.kind === 'done' ? withResults(other, { before: ran.results }) : other
    const {
      target: called,
      id = null,
      query = {},
      body = null,
      headers = {},
      args = {},
    } = await buildCall(deps, target, mapped, ready)
    return {
      ...(isWrite(target.plan, called)
        ? { call: { target: { ...called }, id, query, body, headers: { ...headers }, args } }
        : {}),
      ...(await stepWrites(stepRunOf('before', deps, target, mapped, ready), before)),
      ...(await stepWrites(stepRunOf('after', deps, target, mapped, ready), after)),
    }
  } catch (error) {
    if (error instanceof Failure && UNDECIDED.has(error.reason)) return undefined
    throw error
  }
}

/** Failures of expressions that need what a part of the body, or an answer that is not there yet, would give. */
const UNDECIDED: ReadonlySet<string> = new Set(['EXPRESSION_FAILED', 'METHOD_NOT_DEFINED'])
