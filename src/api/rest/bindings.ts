import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http as httpRule } from '../../../gen/google/api/annotations_pb.ts'
import type { HttpRule } from '../../../gen/google/api/http_pb.ts'
import type { Operation, UnaryOperation } from '../operation.ts'
import { fieldsAt, isPathVariable } from './parameter.ts'
import { PathRouter } from './router.ts'
import { parsePathTemplate } from './template.ts'

/** One REST form of an operation. */
export interface RestBinding {
  readonly operation: UnaryOperation
  /** What the body holds: the whole request, one field of it, or nothing. */
  readonly body: { readonly kind: 'request' | 'none' } | { readonly kind: 'field'; readonly name: string }
  /** The contract's pattern, for metrics. */
  readonly pattern: string
}

/** The REST routes of every unary operation, as `google.api.http` in the contract lays them down. */
export function createRestRouter(operations: Iterable<Operation>): PathRouter<RestBinding> {
  const router = new PathRouter<RestBinding>()
  for (const operation of operations) {
    if (operation.kind !== 'unary' || !hasOption(operation.method, httpRule)) continue
    const rule = getOption(operation.method, httpRule)
    for (const form of [rule, ...rule.additionalBindings]) addForm(router, operation, form)
  }
  return router
}

function addForm(router: PathRouter<RestBinding>, operation: UnaryOperation, rule: HttpRule): void {
  const { verb, pattern } = verbAndPattern(rule, operation.method)
  if (rule.responseBody !== '') throw new Error(`${pattern}: response_body is not served`)
  const template = parsePathTemplate(pattern)
  for (const { fieldPath } of template.variables)
    if (!isPathVariable(fieldsAt(operation.input, fieldPath)?.at(-1)))
      throw new Error(`${pattern}: ${fieldPath.join('.')} is no field that a path can hold`)
  router.add(verb, template, { operation, body: bodyOf(rule, operation), pattern })
}

function verbAndPattern(
  { pattern }: HttpRule,
  method: DescMethod,
): { readonly verb: string; readonly pattern: string } {
  if (pattern.case === undefined) throw new Error(`${method.name}: a REST binding without a path`)
  if (pattern.case === 'custom') return { verb: pattern.value.kind, pattern: pattern.value.path }
  return { verb: pattern.case.toUpperCase(), pattern: pattern.value }
}

function bodyOf({ body }: HttpRule, { input }: UnaryOperation): RestBinding['body'] {
  if (body === '') return { kind: 'none' }
  if (body === '*') return { kind: 'request' }
  if (fieldsAt(input, [body]) === undefined) throw new Error(`${input.typeName}: no field ${body} for the body`)
  return { kind: 'field', name: body }
}
