import type { z } from 'zod'
import {
  createSuggester,
  formatQuantity,
  mustBeOneOf,
  type suggest,
  type Violation,
} from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath, type Json } from '../../foundation/json/index.ts'
import { settingsAsDoubles } from './schema-walk.ts'

/**
 * The first 100 findings of a schema about a value, as violations whose fields start with `prefix`.
 *
 * Unknown keys name the key that was probably meant; unknown formats list the ones there are.
 */
export function findSchemaViolations(schema: z.ZodType, value: Json, prefix: string): Violation[] {
  const suggester = createSuggester()
  const error = (issue: z.core.$ZodRawIssue) => describeIssue(issue, suggester)
  const parsed = schema.safeParse(settingsAsDoubles(schema, value), { error, reportInput: true })
  if (parsed.success) return []
  return parsed.error.issues
    .slice(0, FINDINGS_MAX)
    .flatMap((issue) => violationsOf(issue, [], prefix))
    .slice(0, FINDINGS_MAX)
}

type Issue = z.core.$ZodIssue

/** A finding at a path of the config. */
export type ConfigFinding = Omit<Violation, 'field'> & { readonly at: DotPath }

/** Findings as violations. @param prefix of the fields: `config`, `override` */
export function toViolations(findings: readonly ConfigFinding[], prefix: string): Violation[] {
  return findings.map(({ at, ...finding }) => ({ field: formatDotPath(at, prefix), ...finding }))
}

/** Most findings of one check: a document of garbage would have millions. */
export const FINDINGS_MAX = 100

/** Unknown keys share one issue; their descriptions are lines of its message, because zod drops the schema. */
const LINE = '\n'

const RULES: Readonly<Record<Issue['code'], string>> = {
  invalid_type: 'type',
  too_big: 'max',
  too_small: 'min',
  invalid_format: 'pattern',
  not_multiple_of: 'multiple_of',
  unrecognized_keys: 'unknown_field',
  invalid_union: 'type',
  invalid_key: 'key',
  invalid_element: 'type',
  invalid_value: 'enum',
  custom: 'invalid',
}

function violationsOf(issue: Issue, parent: DotPath, prefix: string): Violation[] {
  const path = [...parent, ...(issue.path as DotPath)]
  const at = (steps: DotPath, description: string, rule: string): Violation => ({
    field: formatDotPath(steps, prefix),
    description,
    rule,
  })
  switch (issue.code) {
    case 'unrecognized_keys': {
      const lines = issue.message.split(LINE)
      return issue.keys
        .slice(0, FINDINGS_MAX)
        .map((key, index) => at([...path, key], lines[index] ?? 'is not known', RULES.unrecognized_keys))
    }
    case 'invalid_union': {
      const branch = likeliestBranch(issue.errors)
      if (branch !== undefined) return branch.flatMap((inner) => violationsOf(inner, path, prefix))
      return [at(path, issue.message, issue.input === undefined ? 'required' : 'format.unknown')]
    }
    case 'invalid_key':
      return [at(path, issue.issues[0]?.message ?? issue.message, RULES.invalid_key)]
    case 'custom':
      return [at(path, issue.message, typeof issue.params?.rule === 'string' ? issue.params.rule : RULES.custom)]
    default:
      return [at(path, issue.message, issue.input === undefined ? 'required' : RULES[issue.code])]
  }
}

/** The closest option of a union: the fewest issues about the value as a whole, then the fewest of all. */
function likeliestBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const ranked = branches
    .filter((issues) => issues.length > 0)
    .map((issues) => ({ issues, rank: issues.reduce((sum, issue) => sum + complaintWeight(issue), 0) }))
    .sort((a, b) => a.rank - b.rank)
  return ranked[0]?.issues
}

function complaintWeight(issue: Issue): number {
  if (issue.code === 'unrecognized_keys') return issue.path.length === 0 ? 100 * issue.keys.length : 1
  if (issue.code === 'invalid_type' && issue.path.length === 0) return 10_000
  return issue.path.length <= 1 && issue.code !== 'custom' ? 100 : 1
}

/** The description of a finding, worded to follow the field's path. */
function describeIssue(issue: z.core.$ZodRawIssue, suggester: typeof suggest): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${nounOf(issue.expected)}`
    case 'unrecognized_keys':
      return issue.keys
        .slice(0, FINDINGS_MAX)
        .map((key) => `is not a known setting${suggester(key, keysOf(issue.inst))}`)
        .join(LINE)
    case 'invalid_union':
      return 'discriminator' in issue ? describeChoice(issue, suggester) : 'does not have one of the possible shapes'
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${JSON.stringify(issue.values[0])}`
        : mustBeOneOf(issue.input, issue.values.map(String), suggester)
    case 'too_small':
      return describeBound(issue.origin, 'at least', issue.minimum)
    case 'too_big':
      return describeBound(issue.origin, 'at most', issue.maximum)
    default:
      return undefined
  }
}

function describeChoice(
  issue: z.core.$ZodRawIssue & { readonly [key: string]: unknown },
  suggester: typeof suggest,
): string {
  const known = Array.isArray(issue.options) ? issue.options.filter((option) => typeof option === 'string') : []
  const name = String(issue.discriminator)
  const input = issue.input
  const given =
    typeof input === 'object' && input !== null && name in input ? (input as Record<string, unknown>)[name] : undefined
  if (given === undefined) return `is required: one of ${known.join(', ')}`
  return mustBeOneOf(String(given), known, suggester)
}

function describeBound(origin: string, bound: string, limit: number | bigint): string {
  if (origin === 'string') return `must have ${bound} ${formatQuantity(limit, 'character')}`
  if (origin === 'array') return `must have ${bound} ${formatQuantity(limit, 'entry', 'entries')}`
  return `must be ${bound} ${limit}`
}

function nounOf(expected: string): string {
  const nouns: Readonly<Record<string, string>> = {
    string: 'a text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
    record: 'an object',
    null: 'null',
    undefined: 'absent',
  }
  return nouns[expected] ?? expected
}

function keysOf(schema: unknown): string[] {
  const def = (schema as Partial<z.core.$ZodTypes> | undefined)?._zod?.def
  return def?.type === 'object' ? Object.keys(def.shape) : []
}
