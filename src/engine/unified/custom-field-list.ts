import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import type { ApiProxy } from '../proxy/proxy.ts'
import type { AccountAccess } from '../proxy/request.ts'

/** A custom field of an account, as the provider describes it. */
export interface CustomFieldDescription {
  /** Its key in records. */
  readonly name: string
  /** Empty when there is none. */
  readonly label: string
  /** In the provider's words; empty when it names none. */
  readonly type: string
}

/** The method of a definition that lists the fields of a resource, and the parameter that takes the name of the resource. */
interface FieldsMethod {
  readonly resource: string
  readonly parameter: string | undefined
}

/** Pages that are read, and fields that are shown. */
const PAGES_MAX = 10
const FIELDS_MAX = 1_000

/** Parameters that take the name of the resource whose fields are listed. */
const RESOURCE_PARAMETERS: readonly string[] = ['object_type', 'object', 'entity']

/**
 * The custom fields of an account for a resource of its definition; `undefined` when the definition has no method that lists them.
 *
 * @returns the message of the provider when it answers an error
 * @throws Failure as `ApiProxy.call` does
 */
export async function listCustomFields(
  proxy: Pick<ApiProxy, 'call'>,
  account: { readonly plan: Plan; readonly access: AccountAccess },
  definition: JsonObject,
  target: string,
): Promise<readonly CustomFieldDescription[] | string | undefined> {
  const source = findFieldsMethod(definition, target)
  if (source === undefined) return undefined
  const fields: CustomFieldDescription[] = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_MAX && fields.length < FIELDS_MAX; page += 1) {
    const outcome = await proxy.call(account.plan, account.access, {
      target: { kind: 'method', resource: source.resource, method: 'list' },
      query: source.parameter === undefined ? {} : { [source.parameter]: target },
      page: cursor === undefined ? {} : { cursor },
    })
    if (outcome.kind === 'rate_limited') return `the third party asks to wait ${Math.ceil(outcome.retryAfterSeconds)} s`
    if (outcome.kind !== 'ok') return outcome.message
    fields.push(...[outcome.result].flat().flatMap(describeField))
    const next = outcome.page?.nextCursor
    if (next === undefined || next === null) break
    cursor = next
  }
  return fields.slice(0, FIELDS_MAX)
}

/** A list of the definition that is named after the fields of the resource, or that takes its name: `ticket_fields`, `properties`. */
function findFieldsMethod({ resources }: JsonObject, target: string): FieldsMethod | undefined {
  const singular = target.replace(/s$/, '')
  const named = [`${singular}_fields`, `${target}_fields`, `${target}_properties`, 'properties', 'fields']
  for (const resource of named) {
    const methods = isJsonObject(resources) && Object.hasOwn(resources, resource) ? resources[resource] : undefined
    const list = isJsonObject(methods) ? methods.list : undefined
    if (!isJsonObject(list)) continue
    const required = isJsonObject(list.query_schema) ? list.query_schema.required : undefined
    const [parameter, ...more] = Array.isArray(required) ? required.map(String) : []
    if (more.length === 0 && (parameter === undefined || RESOURCE_PARAMETERS.includes(parameter)))
      return { resource, parameter }
  }
  return undefined
}

/** The description of a field in the words of several providers; none for a field that the provider says is not a custom one. */
function describeField(field: Json): readonly CustomFieldDescription[] {
  if (!isJsonObject(field) || isStandard(field)) return []
  const name = firstText(field.api_name, field.key, field.label === undefined ? field.id : field.name, field.name)
  if (name === '') return []
  const { schema } = field
  const label = firstText(field.label, field.field_label, field.title, field.name)
  const type = firstText(field.data_type, field.type, isJsonObject(schema) ? schema.type : undefined)
  return [{ name, label, type }]
}

/** Keys by which providers say that a field is one of their own. */
const STANDARD_FLAGS: readonly (readonly [key: string, value: boolean])[] = [
  ['custom', false],
  ['custom_field', false],
  ['hubspotDefined', true],
  ['default', true],
]

function isStandard(field: JsonObject): boolean {
  return STANDARD_FLAGS.some(([key, value]) => field[key] === value)
}

function firstText(...values: readonly (Json | undefined)[]): string {
  const found = values.find((value) => typeof value === 'string' || typeof value === 'number')
  return found === undefined ? '' : String(found)
}
