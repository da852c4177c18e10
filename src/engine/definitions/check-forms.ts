import { createSuggester, suggest, type Violation } from '../../foundation/base/index.ts'
import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { FIELDS_MAX, findPatternsProblem, isSecretField } from '../formats/credential/fields.ts'
import { listCredentials } from '../formats/credential/registry.ts'
import { ACTION_RESOURCE, FORM_ACTION, RESERVED_ACTIONS } from './actions.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { labelKeyOf, listFieldsRead } from './form-fields.ts'
import { isReadingMethod } from './method-kinds.ts'

/** A field of the form for connected accounts, with its path in the config. */
export interface FormFieldAt {
  readonly name: string
  readonly field: JsonObject
  readonly path: DotPath
}

/**
 * Semantic problems of the form for connected accounts: options that no method provides, dependencies on fields that are not
 * listed before, values that the context cannot hold. Since a field depends on earlier ones alone, there are no cycles.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findFormProblems(config: JsonObject, path: string): Violation[] {
  const fields = listFormFields(config)
  const findings = [...findSizeProblems(fields), ...findFieldProblems(config, fields)]
  return toViolations(findings, path)
}

/** Limits of one form hold for all its steps together, which are checked and shown at once. Those of one step are in its schema. */
function findSizeProblems(fields: readonly FormFieldAt[]): ConfigFinding[] {
  if (new Set(fields.map(({ path }) => path[3])).size < 2) return []
  const at = ['actions', FORM_ACTION]
  if (fields.length > FIELDS_MAX)
    return [{ at, description: `must have at most ${FIELDS_MAX} fields in all steps`, rule: 'max' }]
  const problem = findPatternsProblem(fields.map(({ field }) => field))
  return problem === undefined ? [] : [{ at, description: problem, rule: 'field.pattern' }]
}

function findFieldProblems(config: JsonObject, fields: readonly FormFieldAt[]): ConfigFinding[] {
  const suggester = createSuggester()
  const secretNames = new Set(listSecretNames(config))
  return fields
    .slice(0, FIELDS_MAX)
    .flatMap((at, index) => [
      ...findNameProblems(at, fields.slice(0, index), fields, secretNames),
      ...findSourceProblems(config, at, suggester),
      ...findDependencyProblems(at, index, fields),
    ])
}

/** The fields of all steps of the form, in order. */
export function listFormFields({ actions }: JsonObject): FormFieldAt[] {
  const action = isJsonObject(actions) ? actions[FORM_ACTION] : undefined
  if (!isJsonObject(action)) return []
  const prefix = ['actions', FORM_ACTION]
  if (!Array.isArray(action.steps)) return listStepFields(action, prefix)
  return action.steps.flatMap((step: Json, index) => listStepFields(step, [...prefix, 'steps', index]))
}

function listStepFields(step: Json, path: DotPath): FormFieldAt[] {
  if (!isJsonObject(step) || step.type !== 'form' || !isJsonObject(step.config)) return []
  const { fields } = step.config
  if (!Array.isArray(fields)) return []
  return fields.flatMap((field: Json, index) =>
    isJsonObject(field) ? [{ name: String(field.name), field, path: [...path, 'config', 'fields', index] }] : [],
  )
}

/** Secret fields of formats whose `fields` are left out. */
const DEFAULT_SECRETS: Readonly<Record<string, readonly string[]>> = {
  api_key: ['api_key'],
  oauth2_client_credentials: ['client_secret'],
}

function listSecretNames({ credentials }: JsonObject): string[] {
  return listCredentials(credentials).flatMap(({ format, config }) => {
    const fields = isJsonObject(config) ? config.fields : undefined
    if (!Array.isArray(fields)) return DEFAULT_SECRETS[format] ?? []
    return fields.filter(isSecret).map((field: JsonObject) => String(field.name))
  })
}

function isSecret(field: Json): field is JsonObject {
  return isJsonObject(field) && isSecretField(field as Parameters<typeof isSecretField>[0])
}

function findNameProblems(
  { name, field, path }: FormFieldAt,
  before: readonly FormFieldAt[],
  all: readonly FormFieldAt[],
  secretNames: ReadonlySet<string>,
): ConfigFinding[] {
  const finding = (key: string, description: string, rule: string) => ({ at: [...path, key], description, rule })
  const labelKey = field.data_source === undefined ? undefined : labelKeyOf({ name, type: String(field.type) })
  return [
    ...(isSecret(field)
      ? [finding('type', 'is a secret, but values of this form become part of the readable context', 'form.secret')]
      : []),
    ...(secretNames.has(name) || (labelKey !== undefined && secretNames.has(labelKey))
      ? [
          finding(
            'name',
            'or its label has the name of a credential, which no key of the context may have',
            'form.credential_name',
          ),
        ]
      : []),
    ...(before.some((other) => other.name === name && other.path[3] !== path[3])
      ? [finding('name', 'is the name of a field of an earlier step too', 'field.duplicate')]
      : []),
    ...(labelKey !== undefined && all.some((other) => other.name === labelKey)
      ? [finding('name', `stores its label as ${labelKey}, which is the name of another field`, 'form.label_key')]
      : []),
  ]
}

function findSourceProblems(
  config: JsonObject,
  { field, path }: FormFieldAt,
  suggester: typeof suggest,
): ConfigFinding[] {
  const source = field.data_source
  if (!isJsonObject(source)) return []
  const { resource, method = 'list' } = source
  if (typeof resource !== 'string' || typeof method !== 'string') return []
  const at = [...path, 'data_source']
  if (resource === ACTION_RESOURCE) return findActionProblem(config, method, [...at, 'method'], suggester)
  const resources = isJsonObject(config.resources) ? config.resources : {}
  const methods = Object.hasOwn(resources, resource) ? resources[resource] : undefined
  if (!isJsonObject(methods)) {
    const description = `is not a resource of the definition${suggester(resource, Object.keys(resources))}`
    return [{ at: [...at, 'resource'], description, rule: 'form.unknown_resource' }]
  }
  const definition = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (!isJsonObject(definition)) {
    const description = `is not a method of ${resource}${suggester(method, Object.keys(methods))}`
    return [{ at: [...at, 'method'], description, rule: 'form.unknown_method' }]
  }
  if (definition.read_only ?? isReadingMethod(method)) return []
  const description = 'names a method that writes: set read_only of the method where it only reads'
  return [{ at: [...at, 'method'], description, rule: 'form.writes' }]
}

function findActionProblem(
  { actions }: JsonObject,
  name: string,
  at: DotPath,
  suggester: typeof suggest,
): ConfigFinding[] {
  const names = isJsonObject(actions) ? Object.keys(actions) : []
  const callable = names.filter((action) => !(RESERVED_ACTIONS as readonly string[]).includes(action))
  if (callable.includes(name)) return []
  return [{ at, description: `is not a callable action${suggester(name, callable)}`, rule: 'form.unknown_method' }]
}

function findDependencyProblems(
  { name, field, path }: FormFieldAt,
  index: number,
  all: readonly FormFieldAt[],
): ConfigFinding[] {
  const before = new Set(all.slice(0, index).map((other) => other.name))
  const rule = 'form.depends_on'
  const written = Array.isArray(field.depends_on) ? field.depends_on : []
  const explicit = written.flatMap((other: Json, place) =>
    before.has(String(other))
      ? []
      : [{ at: [...path, 'depends_on', place], description: describeLate(String(other), name, all), rule }],
  )
  const later = all.map((other) => other.name).filter((other) => !before.has(other))
  const source = isJsonObject(field.data_source) ? field.data_source : {}
  const read = listFieldsRead({ id: source.id ?? null, query: source.query ?? null, body: source.body ?? null }, later)
  const implicit = read.map((other) => ({
    at: [...path, 'data_source'],
    description: `reads {{${other}}}, but ${describeLate(other, name, all)}`,
    rule,
  }))
  return [...explicit, ...implicit]
}

function describeLate(other: string, name: string, all: readonly FormFieldAt[]): string {
  if (other === name) return `${other} is the field itself`
  const isField = all.some((field) => field.name === other)
  return isField
    ? `${other} is listed after ${name}: the order decides what is chosen first`
    : `${other} is no field of the form${suggest(
        other,
        all.map((field) => field.name),
      )}`
}
