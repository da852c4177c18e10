import { z } from 'zod'
import { type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import { compileJson, listPlaceholderPaths } from '../expressions/template.ts'
import { checkField, fieldKeys, fieldListOf } from '../formats/credential/fields.ts'
import { fieldPath, listOf, nameText, plainText, templateMap, templateText } from '../formats/schema-types.ts'
import type { FormFieldPlan } from './plan.ts'

/** Placeholder of a data source for what the customer has typed into the search box: `{{args.search}}`. */
const SEARCH_ARGUMENT = 'search'

const dataSource = z
  .strictObject({
    type: z.literal('proxy').default('proxy').describe("A call of one of the integration's own methods."),
    resource: nameText().describe('Resource of the definition; `_` for a named action.'),
    method: nameText().default('list').describe('Method of the resource, or the name of the action.'),
    id: templateText().optional().describe('`{{id}}` of the call, for a method below another record.'),
    query: templateMap()
      .optional()
      .describe(
        'Query parameters of the call. `{{args.search}}` is the text of the search box, which exists where it is read; the value of another field is read by its name. One without a value is left out.',
      ),
    body: templateMap().optional().describe('Fields of the request body, with the same placeholders.'),
  })
  .describe('Where the options are read. Pages follow the pagination of the method.')

const optionPaths = z
  .strictObject({
    value: fieldPath().describe('The id that is stored.'),
    label: fieldPath().optional().describe('The name that is shown and stored beside the id. Default: the value.'),
    subText: fieldPath().optional().describe('A second line, such as an e-mail address.'),
  })
  .describe('Paths into one record.')

const formFieldObject = z.strictObject({
  ...fieldKeys,
  options: z
    .union([fieldKeys.options.unwrap(), optionPaths])
    .optional()
    .describe('The choices of a select; with data_source the paths of value, label and subText in a record.'),
  data_source: dataSource.optional(),
  depends_on: listOf(z.string().max(64))
    .max(20)
    .optional()
    .describe(
      'Names of fields, listed before, that must have a value first. Fields that the data source reads are added to it.',
    ),
  disabled_text: plainText().optional().describe('Shown while a field that this one depends on has no value.'),
  empty_text: plainText().optional().describe('Shown when there is nothing to choose.'),
})

type PostConnectField = z.output<typeof formFieldObject>

const formField = formFieldObject
  .superRefine((field, context) => {
    checkField(field, context)
    for (const [message, rule] of findSourceProblems(field))
      context.addIssue({ code: 'custom', message, params: { rule } })
  })
  .meta({ id: 'PostConnectField' })

/** The config of a `form` step: what the customer chooses once the account is connected. */
export const formSchema = z.strictObject({
  fields: fieldListOf(formField).describe('What the customer fills in.'),
  before_active: z
    .boolean()
    .default(false)
    .describe(
      'Whether the account becomes active only once the required fields have a value, for example the company that is read, of a grant over several. `post_install` fills them where there is nothing to choose.',
    ),
})

/** Keys that have an effect for fields with a data source alone, and those that such a field cannot have. */
function findSourceProblems(field: PostConnectField): (readonly [message: string, rule: string])[] {
  const hasPaths = field.options !== undefined && !Array.isArray(field.options)
  if (field.data_source === undefined) {
    const key = (['depends_on', 'disabled_text', 'empty_text'] as const).find((name) => field[name] !== undefined)
    return [
      ...(hasPaths ? [['has options as paths, which need a data_source', 'field.options'] as const] : []),
      ...(key === undefined ? [] : [[`has ${key}, which needs a data_source`, 'field.data_source'] as const]),
    ]
  }
  const isSelect = field.type === 'single_select' || field.type === 'multi_select'
  return [
    ...(isSelect
      ? []
      : [['has a data_source, which only a single_select or multi_select has', 'field.data_source'] as const]),
    ...(isSelect && !hasPaths
      ? [['has a data_source, whose records need options {value, label}', 'field.options'] as const]
      : []),
    ...(field.default === undefined
      ? []
      : [['has a default, but its options are known at the third party only', 'field.default'] as const]),
  ]
}

/** Compiles the fields of a form step. */
export function compileFormFields(fields: readonly PostConnectField[]): FormFieldPlan[] {
  const names = fields.map(({ name }) => name)
  return fields.map(({ options, data_source: source, depends_on, disabled_text, empty_text, ...field }) => {
    if (source === undefined || options === undefined || Array.isArray(options))
      return { ...field, ...(Array.isArray(options) ? { options } : {}), dependsOn: [], remote: undefined }
    const parameters = { id: source.id ?? null, query: source.query ?? {}, body: source.body ?? {} }
    const dependsOn = [...new Set([...(depends_on ?? []), ...listFieldsRead(parameters, names)])]
    const remote = {
      resource: source.resource,
      method: source.method,
      id: source.id === undefined ? undefined : compileJson(source.id),
      query: compileJson(parameters.query),
      body: source.body === undefined ? undefined : compileJson(parameters.body),
      value: parseDotPath(options.value),
      label: options.label === undefined ? undefined : parseDotPath(options.label),
      subText: options.subText === undefined ? undefined : parseDotPath(options.subText),
      isSearchable: readsSearch(parameters),
      disabledText: disabled_text,
      emptyText: empty_text,
    }
    return { ...field, dependsOn, remote }
  })
}

/** Names of fields of the form that templates read: `{{workspace}}`, `{{context.workspace}}`. */
export function listFieldsRead(templates: JsonObject, names: readonly string[]): string[] {
  const read = listPlaceholderPaths(templates).flatMap(({ root, steps: [name] }) =>
    (root === undefined || root === 'context') && names.includes(String(name)) ? [String(name)] : [],
  )
  return [...new Set(read)]
}

function readsSearch(templates: JsonObject): boolean {
  return listPlaceholderPaths(templates).some(({ root, steps }) => root === 'args' && steps[0] === SEARCH_ARGUMENT)
}

/** The key of the context that holds the label of a select with a data source, of a `multi_select` the labels. */
export function labelKeyOf({ name, type }: { readonly name: string; readonly type: string }): string {
  return type === 'multi_select' ? `${name}_labels` : `${name}_label`
}
