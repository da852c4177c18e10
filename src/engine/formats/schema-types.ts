import { z } from 'zod'
import {
  exceedsJsonSize,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  tryParseDotPath,
} from '../../foundation/json/index.ts'
import { ENVIRONMENT_ROOTS } from '../expressions/environment-variables.ts'
import { validateExpression } from '../expressions/parse.ts'
import { findTemplateProblem } from '../expressions/template.ts'
import { findBaseUrlProblem } from '../expressions/url-template.ts'

/**
 * The role of a field of the config, beyond its JSON type.
 *
 * One walk over schema and config together (`engine/definitions/schema-walk.ts`) reads these to find unknown placeholder roots,
 * credential material and URLs.
 */
export type FieldRole =
  /** A text, or a JSON value of texts, with placeholders. `secret`: literal text here is credential material. */
  | { readonly kind: 'template'; readonly secret: boolean }
  /** JSONata. `roots`: its root names, where they are known. */
  | { readonly kind: 'expression'; readonly roots: readonly string[] | undefined }
  /** A path into a JSON value. */
  | { readonly kind: 'path' }
  /** A URL that the product will call. */
  | { readonly kind: 'url' }
  /** A text for people. */
  | { readonly kind: 'prose' }

/** Root names of expressions over a response: `response {status, headers, body}`, its members, and `data`, the body again. */
export const RESPONSE_ROOTS = ['response', 'status', 'headers', 'body', 'data'] as const

/** The role of a schema; schemas without one are plain values. */
export const fieldRoles = z.registry<FieldRole>()

/**
 * Limits of the parts of a definition, in UTF-16 units and entries. Every text, list and map has one of these limits or a
 * smaller one, so that the cost of a check or a call is bounded by the size of the definition.
 */
export const DEFINITION_LIMITS = {
  /** The longest texts are expressions and GraphQL documents. */
  textLength: 64 * 1024,
  nameLength: 256,
  urlLength: 4_096,
  entries: 1_000,
  /** A free-form JSON value: a body, a schema, examples. */
  jsonLength: 128 * 1024,
} as const
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const ONE_PLACEHOLDER = /^\{\{[^{}]*\}\}$/

/** A text for people, without placeholders: labels, names, help. */
export function plainText(): z.ZodString {
  return withRole(rawText(), { kind: 'prose' })
}

/** Any text, without placeholders. */
export function rawText(): z.ZodString {
  return z.string().max(DEFINITION_LIMITS.textLength)
}

/** A name that is not empty: of a parameter, a key, a scope. */
export function nameText(): z.ZodString {
  return z.string().min(1).max(DEFINITION_LIMITS.nameLength)
}

/** A list. */
export function listOf<T extends z.core.$ZodType>(element: T): z.ZodArray<T> {
  return z.array(element).max(DEFINITION_LIMITS.entries)
}

/**
 * Values by name; of an enumeration of names, some. The limit is part of the schema's metadata, where `deepPartial` and the
 * published JSON Schema find it.
 */
export function mapOf<V extends z.core.$ZodType>(
  key: z.ZodString,
  value: V,
  maxProperties?: number,
): z.ZodRecord<z.ZodString, V>
export function mapOf<K extends z.ZodEnum, V extends z.core.$ZodType>(
  key: K,
  value: V,
  maxProperties?: number,
): z.ZodRecord<K & z.core.$partial, V>
export function mapOf(
  key: z.ZodString | z.ZodEnum,
  value: z.core.$ZodType,
  maxProperties: number = DEFINITION_LIMITS.entries,
): z.ZodRecord<z.core.$ZodRecordKey, z.core.$ZodType> {
  const limit = refineWith<object>(
    (map) => (Object.keys(map).length > maxProperties ? `must have at most ${maxProperties} entries` : undefined),
    'max',
  )
  return z.partialRecord(key, value).superRefine(limit).meta({ maxProperties })
}

/** A URL that people open: a logo, a page of documentation. */
export function webAddress(): z.ZodString {
  return z.string().max(2048).superRefine(refineWith(findWebAddressProblem, 'url.http'))
}

function findWebAddressProblem(text: string): string | undefined {
  const isFine = /^https?:\/\//i.test(text) && URL.canParse(text)
  return isFine ? undefined : 'must be an http or https URL'
}

/** A text that may hold placeholders. */
export function templateText(): z.ZodString {
  return withRole(templateString(), { kind: 'template', secret: false })
}

/** Like `templateText`; literal text here is credential material and is stored encrypted. */
export function secretText(): z.ZodString {
  return withRole(templateString(), { kind: 'template', secret: true })
}

/** Any JSON value whose strings may hold placeholders. */
export function jsonTemplate(): z.ZodType<Json> {
  return withRole(templateJson(), { kind: 'template', secret: false })
}

/** A map of names to values with placeholders: query parameters, token parameters. */
export function templateMap(): z.ZodType<Record<string, Json>> {
  return mapOf(nameText(), jsonTemplate())
}

/** Any JSON value, without placeholders. */
export function anyJson(): z.ZodType<Json> {
  return z
    .custom<Json>((value) => value !== undefined)
    .superRefine(refineWith(findSizeProblem, 'max', true))
    .meta({ 'x-json-length-max': DEFINITION_LIMITS.jsonLength })
}

/** A URL that the product calls: absolute, or starting with a placeholder. */
export function urlText(): z.ZodString {
  return withRole(templateString(DEFINITION_LIMITS.urlLength).superRefine(refineWith(findBaseUrlProblem, 'url')), {
    kind: 'url',
  })
}

/**
 * JSONata. Its syntax is checked here, before it is stored.
 *
 * @param roots its root names beside those of environment variables, which every such expression may read (`environmentRoots`):
 * any other one is a finding. Absent: they depend on the API
 */
export function expressionText(roots?: readonly string[]): z.ZodString {
  const schema = z
    .string()
    .min(1)
    .max(DEFINITION_LIMITS.textLength, { abort: true })
    .superRefine(refineWith(findExpressionProblem, 'expression.syntax'))
  return withRole(schema, {
    kind: 'expression',
    roots: roots === undefined ? undefined : [...roots, ...ENVIRONMENT_ROOTS],
  })
}

/** A path into a JSON value, for example `data.items`, `meta.cursors[0].next` or `["@odata.nextLink"]`. */
export function fieldPath(): z.ZodString {
  return withRole(z.string().max(1024, { abort: true }).superRefine(refineWith(findPathProblem, 'path')), {
    kind: 'path',
  })
}

/** The problem of a text as a path into a JSON value, worded to follow the field's name. */
export function findPathProblem(text: string): string | undefined {
  const read = tryParseDotPath(text)
  return 'problem' in read ? read.problem : undefined
}

/** A valid header name (RFC 9110). */
export function headerName(): z.ZodString {
  return z.string().max(DEFINITION_LIMITS.nameLength).regex(HEADER_NAME, { error: 'must be a header name' })
}

/** The problem of a text as a header name, worded to follow the field's name. */
export function findHeaderNameProblem(text: string): string | undefined {
  return HEADER_NAME.test(text) ? undefined : 'must be a header name'
}

/** A whole number, or one placeholder for one. */
export function templatedInteger(minimum: number, maximum: number): z.ZodType<number | string> {
  const placeholder = templateText().regex(ONE_PLACEHOLDER, { error: 'must be a whole number or one placeholder' })
  return z.union([z.int().min(minimum).max(maximum), placeholder])
}

/** Header values by name; `null` removes a header that another level sets. */
export function headerMap(): z.ZodType<Record<string, string | number | boolean | null>> {
  return mapOf(headerName(), z.union([templateText(), z.number(), z.boolean(), z.null()]))
}

/** Adds a rule: the finding is the problem that `find` returns. With `abort` later rules are skipped. */
export function refineWith<T>(find: (value: T) => string | undefined, rule: string, abort = false) {
  return (value: T, context: z.RefinementCtx<T>): void => {
    const problem = find(value)
    if (problem !== undefined)
      context.addIssue({ code: 'custom', message: problem, params: { rule }, continue: !abort })
  }
}

function withRole<S extends z.ZodType>(schema: S, role: FieldRole): S {
  fieldRoles.add(schema, role)
  return schema
}

function templateString(lengthMax: number = DEFINITION_LIMITS.textLength): z.ZodString {
  return z.string().max(lengthMax, { abort: true }).superRefine(refineWith(findTemplateProblem, 'placeholder.syntax'))
}

function templateJson(): z.ZodType<Json> {
  return anyJson().superRefine(refineWith(findJsonTemplateProblem, 'placeholder.syntax'))
}

function findSizeProblem(value: Json): string | undefined {
  const { jsonLength } = DEFINITION_LIMITS
  return exceedsJsonSize(value, jsonLength, JSON_DEPTH_MAX)
    ? `must have at most ${jsonLength} characters as JSON, nested at most ${JSON_DEPTH_MAX} deep`
    : undefined
}

function findJsonTemplateProblem(value: Json): string | undefined {
  if (typeof value === 'string') return findTemplateProblem(value)
  const items = Array.isArray(value) || isJsonObject(value) ? Object.values(value) : []
  for (const item of items) {
    const problem = findJsonTemplateProblem(item)
    if (problem !== undefined) return problem
  }
  return undefined
}

function findExpressionProblem(text: string): string | undefined {
  const parsed = validateExpression(text)
  return 'problem' in parsed ? `is not a JSONata expression: ${parsed.problem}` : undefined
}
