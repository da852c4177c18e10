import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { deepPartial } from '../definitions/override-schema.ts'
import { anyJson, expressionText, headerName, mapOf, nameText } from '../formats/schema-types.ts'
import { syntaxOf } from './expression-verdicts.ts'

/**
 * What a unified value is computed from: an expression that returns the whole, or an object whose texts are expressions and
 * whose other leaves are constants. A list holds such values; entries without a value are left out of it.
 */
export type FieldMap = string | JsonObject

/** Operators of filters. */
export const FILTER_OPERATORS = ['eq', 'ne', 'in', 'nin', 'gt', 'gte', 'lt', 'lte', 'like'] as const

/** Most expressions of one field map. */
const LEAVES_MAX = 500
/** Deepest nesting of a field map. */
const FIELD_DEPTH_MAX = 8
/** Most steps before and after a call. */
const STEPS_MAX = 5
/** Most fields of the body that an integration requires. */
const REQUIRED_MAX = 50
/** Most parts of a composite id. */
const ID_PARTS_MAX = 10
/** Most ids of one request that expands references. */
const BATCH_SIZE_MAX = 1_000

/** A field map, or one expression. */
function fieldMap(): z.ZodType<FieldMap> {
  return z
    .custom<FieldMap>((value) => typeof value === 'string' || isJsonObject(value), {
      error: 'must be an expression or an object of expressions',
    })
    .superRefine(checkFieldMap)
}

function checkFieldMap(map: FieldMap, context: z.RefinementCtx): void {
  const leaves = listLeaves(map, []).slice(0, LEAVES_MAX + 1)
  if (leaves.length > LEAVES_MAX) addProblem(context, [], `must have at most ${LEAVES_MAX} expressions`, 'max')
  for (const { path, value } of leaves.slice(0, LEAVES_MAX)) {
    if (path.length > FIELD_DEPTH_MAX) addProblem(context, path, 'is nested too deeply', 'max')
    const problem = typeof value === 'string' ? expressionProblem(value) : undefined
    if (problem !== undefined) addProblem(context, path, problem, 'expression.syntax')
  }
}

interface FieldMapLeaf {
  readonly path: readonly (string | number)[]
  readonly value: Json
}

/** Leaves of a field map; what is nested deeper than allowed counts as one. */
function listLeaves(value: Json, path: readonly (string | number)[]): FieldMapLeaf[] {
  const isNested = Array.isArray(value) || isJsonObject(value)
  if (!isNested || path.length > FIELD_DEPTH_MAX) return [{ path, value }]
  const entries: [string | number, Json][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return entries.flatMap(([key, item]) => listLeaves(item, [...path, key]))
}

function addProblem(context: z.RefinementCtx, path: readonly (string | number)[], message: string, rule: string): void {
  context.addIssue({ code: 'custom', message, params: { rule }, path: [...path] })
}

function expressionProblem(text: string): string | undefined {
  const parsed = syntaxOf(text)
  return 'problem' in parsed ? `is not a JSONata expression: ${parsed.problem}` : undefined
}

/** `true` removes nothing: a flag that another layer sets. */
const flag = z.boolean()

const methodName = z.union([
  nameText(),
  z
    .strictObject({
      expression: expressionText().describe('Returns the name of the method.'),
      allowed: z
        .array(nameText())
        .min(1)
        .max(50)
        .describe('What the expression may return: names, or <resource>.<method>.'),
    })
    .describe('A method that depends on the request.'),
])

const requestSchema = z.strictObject({
  id: expressionText().optional().describe('Id of the proxied call. Default: the id of the unified call.'),
  query: fieldMap().optional().describe('Query parameters of the proxied call.'),
  body: fieldMap().optional().describe('Body of the proxied call.'),
  headers: mapOf(headerName(), expressionText()).optional().describe('Headers of the proxied call.'),
  args: fieldMap().optional().describe('Arguments of the proxied call ({{args.…}}).'),
  required: z
    .array(nameText())
    .max(REQUIRED_MAX)
    .optional()
    .describe('Fields of the body that this integration requires beyond those of the model.'),
})

const responseSchema = z.strictObject({
  items: expressionText().optional().describe('The records; roots: result. Default: result.'),
  fields: fieldMap().optional().describe('The unified record, per record of the provider.'),
  drop_if: expressionText().optional().describe('Per record; truthy leaves it out.'),
  partial: flag.optional().describe('Its records lack fields that get returns.'),
})

const enumSchema = z.strictObject({
  map: mapOf(nameText(), z.string()).optional().describe('Unified value by provider value (as text).'),
  case_insensitive: flag.optional().describe('Provider values are compared in lower case. Default false.'),
  default: z.string().optional().describe('Unified value of all other provider values. Default: null.'),
  keep_raw: flag.optional().describe('Adds <field>_raw with the provider value. Default true.'),
  write: mapOf(nameText(), anyJson())
    .optional()
    .describe('Provider value by unified value. Default: the inverse of map.'),
})

const filterSchema = z.strictObject({
  ops: z.array(z.enum(FILTER_OPERATORS)).min(1).max(FILTER_OPERATORS.length).describe('Operators that are honoured.'),
  to: z
    .union([nameText(), mapOf(z.enum(FILTER_OPERATORS), nameText())])
    .optional()
    .describe(
      'Query parameter, or one per operator. Absent: the request maps read the value as $filters.<field>.<op>.',
    ),
  value: expressionText()
    .optional()
    .describe(
      'The value that is sent, such as a condition of a query language; reads $value and $op. Default: the value.',
    ),
  format: z
    .enum(['date', 'date-time', 'epoch', 'epoch_ms'])
    .optional()
    .describe('How a time is written. Default: as the caller wrote it.'),
  required: flag.optional().describe('A request without it is rejected. Default false.'),
})

const sortSchema = z.strictObject({
  asc: fieldMap().optional().describe('Query parameters that sort upward.'),
  desc: fieldMap().optional().describe('Query parameters that sort downward.'),
})

const stepSchema = z.strictObject({
  name: nameText().describe('Later expressions read $before.<name> or $after.<name>.'),
  type: z.enum(['request', 'transform']),
  resource: nameText().optional().describe('Of a request: the resource.'),
  method: nameText().optional().describe('Of a request: the method.'),
  id: expressionText().optional().describe('Of a request: the id.'),
  query: fieldMap().optional().describe('Of a request: query parameters.'),
  body: fieldMap().optional().describe('Of a request: the body.'),
  expression: expressionText().optional().describe('Of a transform: the value of the step.'),
  run_if: expressionText().optional().describe('The step is skipped unless the value is truthy.'),
  result: flag.optional().describe('Of a step after the call: its value replaces the answer of the provider.'),
})

const expansionSchema = z.strictObject({
  resource: nameText(),
  method: nameText(),
  ids: expressionText().describe('Per record of the provider: one id or a list.'),
  batch: z
    .strictObject({
      size: z.int().min(1).max(BATCH_SIZE_MAX).describe('Ids per request.'),
      query: fieldMap().optional().describe('Query parameters; reads $ids.'),
      body: fieldMap().optional().describe('Body; reads $ids.'),
      key: expressionText().describe('Per loaded record: its id.'),
    })
    .optional()
    .describe('Several records per request. Absent: one request per id.'),
  fields: fieldMap().describe('The expanded value, per loaded record.'),
})

const customFieldsSchema = z.strictObject({
  mode: z
    .enum(['rest', 'list', 'none'])
    .describe('rest: every key that no field reads; list: a list of names and values; none.'),
  path: expressionText().optional().describe('The object (rest) or list (list). Default: the record.'),
  name: expressionText().optional().describe('Of a list, per entry. Default: name.'),
  value: expressionText().optional().describe('Of a list, per entry. Default: value.'),
  only: z
    .array(nameText())
    .max(500)
    .optional()
    .describe('Of rest: the only keys that are shown, less those of omit; a final * stands for any ending.'),
  omit: z.array(nameText()).max(500).optional().describe('Keys left out; a final * stands for any ending.'),
})

/** The mapping of one method, all layers merged. */
export const mappingConfigSchema = z
  .strictObject({
    resource: nameText().describe('Resource of the definition; _ for an action.'),
    method: methodName.describe('Method of the resource, or name of the action.'),
    request: requestSchema.optional(),
    response: responseSchema.optional(),
    enums: mapOf(nameText(), enumSchema).optional().describe('By dotted unified field.'),
    filters: mapOf(nameText(), filterSchema).optional().describe('By unified field.'),
    id_parts: mapOf(nameText(), z.int().min(2).max(ID_PARTS_MAX))
      .optional()
      .describe('How many parts, with colons between them, the id of a call (id) or of a reference (its field) has.'),
    sort: mapOf(nameText(), sortSchema).optional().describe('By unified field.'),
    before: z.array(stepSchema).max(STEPS_MAX).optional().describe('Steps before the call.'),
    after: z.array(stepSchema).max(STEPS_MAX).optional().describe('Steps after the call.'),
    expand: mapOf(nameText(), expansionSchema).optional().describe('By unified field; loaded with expand.'),
    error: expressionText()
      .optional()
      .describe('Over {status, message, body, metadata}: {status?, code?, message?, fields?}.'),
    custom_fields: customFieldsSchema.optional(),
  })
  .meta({ title: 'Mapping of a unified method' })

/** One layer of a mapping: every key may be absent, `null` removes what a lower layer sets. */
export const mappingLayerSchema = deepPartial(mappingConfigSchema)

/** The mapping of one method. */
export type MappingConfig = z.output<typeof mappingConfigSchema>

export type EnumConfig = z.output<typeof enumSchema>
export type FilterConfig = z.output<typeof filterSchema>
export type FilterOperator = (typeof FILTER_OPERATORS)[number]
export type StepConfig = z.output<typeof stepSchema>
export type ExpansionConfig = z.output<typeof expansionSchema>
export type CustomFieldsConfig = z.output<typeof customFieldsSchema>
