import { Failure } from '../../foundation/base/index.ts'
import { formatDotPath, type JsonObject } from '../../foundation/json/index.ts'
import { compilePlan } from '../definitions/compile.ts'
import type { Plan } from '../definitions/plan.ts'
import { checkFields, compareFields, type FindingAt, type MappingFinding } from './check-fields.ts'
import { checkMapping } from './check-mapping.ts'
import { checkReferences } from './check-references.ts'
import { checkRequests } from './check-requests.ts'
import type { MergedMapping } from './mapping.ts'
import type { UnifiedResource } from './model.ts'
import type { References } from './references.ts'

/** The merged mappings of a resource to be checked. */
interface MappingsToCheck {
  readonly resource: UnifiedResource
  readonly methods: ReadonlyMap<string, MergedMapping>
  /** All methods of the resource, with which those are compared. */
  readonly siblings: ReadonlyMap<string, MergedMapping>
  /** Config of the integration; absent: its methods are not known. */
  readonly definition?: JsonObject | undefined
  /** Resources that expanded references show fields of. */
  readonly references: References
}

/**
 * What is wrong, or could be better, with merged mappings, without a record of the provider.
 *
 * @param prefix of the paths of a method: `config`; or by method
 */
export function findMappingProblems(
  mappings: MappingsToCheck,
  prefix: string | ((method: string) => string),
): readonly MappingFinding[] {
  const { resource, methods, siblings, definition, references } = mappings
  const plan = planOf(definition)
  return [...methods].flatMap(([method, merged]) => {
    const before = typeof prefix === 'string' ? prefix : prefix(method)
    const violations = checkMapping(merged.config, { resource, method, layers: merged.layers, plan }, before)
    const errors = violations.map(
      ({ field, rule, description }): MappingFinding => ({
        path: field,
        rule,
        severity: 'error',
        message: description,
      }),
    )
    if (errors.length > 0) return errors
    const checked = { resource, method, merged, definition }
    const found = [
      ...checkFields(checked),
      ...compareFields(checked, siblings),
      ...checkRequests(checked),
      ...checkReferences(checked, references),
    ]
    return found.map((finding) => toFinding(finding, before))
  })
}

/** A finding with its path. */
function toFinding({ at, ...finding }: FindingAt, prefix: string): MappingFinding {
  return { path: formatDotPath(at, prefix), ...finding }
}

/** The compiled definition; `undefined` when it does not compile, which is a finding about the definition. */
function planOf(definition: JsonObject | undefined): Plan | undefined {
  if (definition === undefined) return undefined
  try {
    return compilePlan(definition)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/** The same finding of several methods once. */
export function distinctFindings(findings: readonly MappingFinding[]): readonly MappingFinding[] {
  return [...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values()]
}
