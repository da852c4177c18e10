import { z } from 'zod'
import { isJsonObject, type Json, readDotPath } from '../base/index.ts'
import { findBaseUrlProblem, findTemplateProblem, parseExpression } from '../expression/index.ts'

/**
 * What a leaf of the config is, beyond its JSON type.
 *
 * One walk over schema and config together (`definition/schema-walk.ts`) reads these to find unknown placeholder roots,
 * credential material and addresses.
 */
export type LeafRole =
  /** A text, or a JSON value of texts, with placeholders. `secret`: literal text here is credential material. */
  | { readonly kind: 'template'; readonly secret: boolean }
  /** JSONata. `roots`: the names it starts from, where they are known. */
  | { readonly kind: 'expression'; readonly roots: readonly string[] | undefined }
  /** A path into a JSON value. */
  | { readonly kind: 'path' }
  /** An address that the product will call. */
  | { readonly kind: 'url' }
  /** A text for people, in which anything may stand. */
  | { readonly kind: 'prose' }

/** What expressions over an answer see: `response {status, headers, body}`, its parts bare, and `data`, the body again. */
export const RESPONSE_ROOTS = ['response', 'status', 'headers', 'body', 'data'] as const

/** The role of a schema; schemas without one are plain values. */
export const leafRoles = z.registry<LeafRole>()

/** Longest single text of a definition: expressions and GraphQL documents are long, nothing is longer. */
const TEXT_LENGTH_MAX = 64 * 1024
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const ONE_PLACEHOLDER = /^\{\{[^{}]*\}\}$/

/** A text for people, without placeholders: labels, names, help. */
export function plainText(): z.ZodString {
  return roleOf(z.string().max(TEXT_LENGTH_MAX), { kind: 'prose' })
}

/** An address that people open: a logo, a page of documentation. */
export function webAddress(): z.ZodString {
  return z.string().max(2048).superRefine(refineWith(findWebAddressProblem, 'url.http'))
}

function findWebAddressProblem(text: string): string | undefined {
  const isFine = /^https?:\/\//i.test(text) && URL.canParse(text)
  return isFine ? undefined : 'must be an http or https URL'
}

/** A text that may hold placeholders. */
export function templateText(): z.ZodString {
  return roleOf(templateString(), { kind: 'template', secret: false })
}

/** Like `templateText`; literal text here is credential material and is stored encrypted. */
export function secretText(): z.ZodString {
  return roleOf(templateString(), { kind: 'template', secret: true })
}

/** Any JSON value whose strings may hold placeholders. */
export function jsonTemplate(): z.ZodType<Json> {
  return roleOf(templateJson(), { kind: 'template', secret: false })
}

/** A map of names to values with placeholders: query parameters, token parameters. */
export function templateMap(): z.ZodType<Record<string, Json>> {
  return z.record(z.string(), jsonTemplate())
}

/** Any JSON value, kept as it is. */
export function anyJson(): z.ZodType<Json> {
  return z.custom<Json>((value) => value !== undefined)
}

/** An address the product calls: absolute, or starting with a placeholder. */
export function urlText(): z.ZodString {
  return roleOf(templateString().superRefine(refineWith(findBaseUrlProblem, 'url')), { kind: 'url' })
}

/**
 * JSONata. Refused here when it does not parse, never when it is called.
 *
 * @param roots the names that it starts from: any other is a finding. Absent: they depend on the API.
 */
export function expressionText(roots?: readonly string[]): z.ZodString {
  const schema = z
    .string()
    .min(1)
    .max(TEXT_LENGTH_MAX)
    .superRefine(refineWith(findExpressionProblem, 'expression.syntax'))
  return roleOf(schema, { kind: 'expression', roots })
}

/** A path into a JSON value, for example `data.items`, `meta.cursors[0].next` or `["@odata.nextLink"]`. */
export function fieldPath(): z.ZodString {
  return roleOf(z.string().superRefine(refineWith(findPathProblem, 'path')), { kind: 'path' })
}

/** What is wrong with a text as a path into a JSON value: a clause that goes on after the field's name. */
export function findPathProblem(text: string): string | undefined {
  const read = readDotPath(text)
  return 'problem' in read ? read.problem : undefined
}

/** A name that HTTP accepts for a header. */
export function headerName(): z.ZodString {
  return z.string().regex(HEADER_NAME, { error: 'must be a header name' })
}

/** What is wrong with a text as the name of a header: a clause that goes on after the field's name. */
export function findHeaderNameProblem(text: string): string | undefined {
  return HEADER_NAME.test(text) ? undefined : 'must be a header name'
}

/** A whole number, or one placeholder that yields one. */
export function templatedInteger(minimum: number, maximum: number): z.ZodType<number | string> {
  const placeholder = templateText().regex(ONE_PLACEHOLDER, { error: 'must be a whole number or one placeholder' })
  return z.union([z.int().min(minimum).max(maximum), placeholder])
}

/** Header values by name; `null` removes a header that another level sets. */
export function headerMap(): z.ZodType<Record<string, string | number | boolean | null>> {
  return z.record(headerName(), z.union([templateText(), z.number(), z.boolean(), z.null()]))
}

/** Adds a cross-field or syntax rule: the finding is the sentence that `find` returns. */
export function refineWith<T>(find: (value: T) => string | undefined, rule: string) {
  return (value: T, context: z.RefinementCtx<T>): void => {
    const problem = find(value)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, params: { rule } })
  }
}

function roleOf<S extends z.ZodType>(schema: S, role: LeafRole): S {
  leafRoles.add(schema, role)
  return schema
}

function templateString(): z.ZodString {
  return z.string().max(TEXT_LENGTH_MAX).superRefine(refineWith(findTemplateProblem, 'placeholder.syntax'))
}

function templateJson(): z.ZodType<Json> {
  return anyJson().superRefine(refineWith(findJsonTemplateProblem, 'placeholder.syntax'))
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
  const parsed = parseExpression(text)
  return 'problem' in parsed ? `is not a JSONata expression: ${parsed.problem}` : undefined
}
