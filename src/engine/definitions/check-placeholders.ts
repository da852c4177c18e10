import { createSuggester, suggest, type Violation } from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listRootNames } from '../expressions/input-analysis.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import { resolvedSchema } from './config-schema.ts'
import { type ConfigFinding, FINDINGS_MAX, toViolations } from './findings.ts'
import { listBareNames } from './placeholder-names.ts'
import { type FieldAt, listFields } from './schema-walk.ts'

/**
 * Texts that would resolve to nothing: placeholders with unknown names, placeholders in settings without templates, and
 * expressions with unknown root names.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findPlaceholderProblems(config: JsonObject, path: string): Violation[] {
  const places = listFields(resolvedSchema, config)
  const findings = [
    ...findUnknownPlaceholders(config, places),
    ...places.flatMap(findLiteralPlaceholder),
    ...places.flatMap(findUnknownNames),
  ]
  return toViolations(findings, path)
}

/** Members of `credentials` that are no fields: tokens, and the secrets of webhooks and subscriptions. */
const NOT_COLLECTED: ReadonlySet<string> = new Set(['oauth', 'webhook', 'subscription'])

function findUnknownPlaceholders(config: JsonObject, places: readonly FieldAt[]): ConfigFinding[] {
  const known = listBareNames(config)
  const templates = places
    .filter(({ role }) => role.kind === 'template' || role.kind === 'url')
    .flatMap(({ value, path }) => listTexts(value, path))
  const suggester = createSuggester()
  const findings: ConfigFinding[] = []
  for (const { value, path: at } of templates) {
    if (findings.length >= FINDINGS_MAX) break
    for (const { root, text, steps } of listPlaceholderPaths(value)) {
      const name = String(steps[0])
      const isField = root === undefined || (root === 'credentials' && !NOT_COLLECTED.has(name))
      if (!isField || steps.length === 0 || known.has(name)) continue
      const instead = `write {{context.${formatDotPath(steps)}}} for a key of the account's context`
      const description = `uses {{${text}}}, which no credential field provides${suggester(name, known)}; ${instead}`
      findings.push({ at, description, rule: 'placeholder.unknown_root' })
    }
  }
  return findings
}

/** Keys are literal everywhere, also inside the JSON of a template. */
function findLiteralPlaceholder({ role, value, path }: FieldAt): ConfigFinding[] {
  const literals = role.kind === 'literal' ? [{ value, path }] : role.kind === 'template' ? listNames(value, path) : []
  return literals
    .filter((literal) => typeof literal.value === 'string' && literal.value.includes('{{'))
    .map(({ path: at }) => ({
      at,
      description: 'holds {{, but placeholders have no effect here: it would be taken literally',
      rule: 'placeholder.no_effect',
    }))
}

function findUnknownNames({ role, value, path: at }: FieldAt): ConfigFinding[] {
  if (role.kind !== 'expression' || role.roots === undefined || typeof value !== 'string') return []
  const { roots } = role
  const findings = listRootNames(value).flatMap(({ name, next }) => {
    if (!roots.includes(name)) return [describeUnknown(name, roots)]
    return name === 'headers' && next !== undefined && next !== next.toLowerCase()
      ? [
          `reads headers.${JSON.stringify(next)}, but names of headers are lower-case here: ${JSON.stringify(next.toLowerCase())}`,
        ]
      : []
  })
  return [...new Set(findings)].map((description) => ({ at, description, rule: 'expression.unknown_name' }))
}

function describeUnknown(name: string, roots: readonly string[]): string {
  return `starts from ${name}, which is not there${suggest(name, roots)}; there are ${roots.join(', ')}`
}

interface TextAt {
  readonly value: Json
  readonly path: DotPath
}

function listTexts(value: Json, path: DotPath): { value: string; path: DotPath }[] {
  if (typeof value === 'string') return [{ value, path }]
  return childrenOf(value, path).flatMap((child) => listTexts(child.value, child.path))
}

function listNames(value: Json, path: DotPath): TextAt[] {
  const names = isJsonObject(value) ? Object.keys(value).map((name) => ({ value: name, path: [...path, name] })) : []
  return [...names, ...childrenOf(value, path).flatMap((child) => listNames(child.value, child.path))]
}

function childrenOf(value: Json, path: DotPath): TextAt[] {
  if (Array.isArray(value)) return value.map((item: Json, index) => ({ value: item, path: [...path, index] }))
  return isJsonObject(value) ? Object.entries(value).map(([key, item]) => ({ value: item, path: [...path, key] })) : []
}
