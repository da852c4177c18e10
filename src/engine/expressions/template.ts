import { Failure } from '../../foundation/base/index.ts'
import {
  decimalForm,
  isJsonNumber,
  isJsonObject,
  type Json,
  JsonNumber,
  type JsonObject,
  jsonNumberOf,
  parseJson,
  toDouble,
} from '../../foundation/json/index.ts'
import { DATE_FORMAT_DEFAULT, formatDate } from './date-format.ts'
import {
  type Cast,
  lexTemplate,
  type Placeholder,
  type PlaceholderPath,
  resolvePath,
  type TemplatePart,
  type TemplateScope,
} from './placeholder.ts'

/** A text with placeholders, compiled once. */
export type TextTemplate =
  | { readonly kind: 'constant'; readonly text: string }
  /** Exactly one placeholder: the value keeps its JSON type. */
  | { readonly kind: 'value'; readonly placeholder: Placeholder }
  | { readonly kind: 'text'; readonly parts: readonly TemplatePart[] }

/** A JSON value whose strings are templates; subtrees without placeholders are literals. */
export type JsonTemplate =
  | { readonly kind: 'literal'; readonly value: Json }
  | { readonly kind: 'string'; readonly template: TextTemplate }
  | { readonly kind: 'list'; readonly items: readonly JsonTemplate[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, JsonTemplate])[] }

/** Encodes a placeholder's value for its position, or throws. */
export type Encode = (text: string, placeholder: Placeholder) => string

/** The problem of the text as a template, `undefined` when it is valid. */
export function findTemplateProblem(text: string): string | undefined {
  const lexed = lexTemplate(text)
  return lexed.kind === 'problem' ? lexed.description : undefined
}

/** Compiles a text. @throws Failure DEFINITION_INVALID, never for a checked definition */
export function compileTemplate(text: string): TextTemplate {
  const parts = templateParts(text)
  const [first] = parts
  if (first === undefined) return { kind: 'constant', text: '' }
  if (parts.length > 1) return { kind: 'text', parts }
  return typeof first === 'string' ? { kind: 'constant', text: first } : { kind: 'value', placeholder: first }
}

/** The parts of a text. @throws Failure DEFINITION_INVALID */
export function templateParts(text: string): readonly TemplatePart[] {
  const lexed = lexTemplate(text)
  if (lexed.kind === 'problem')
    throw new Failure('DEFINITION_INVALID', `the definition holds a text that ${lexed.description}`)
  return lexed.parts
}

/** Compiles every string of a JSON value; keys are never templates. @throws Failure DEFINITION_INVALID */
export function compileJson(value: Json): JsonTemplate {
  if (typeof value === 'string') {
    const template = compileTemplate(value)
    return template.kind === 'constant' ? { kind: 'literal', value: template.text } : { kind: 'string', template }
  }
  if (Array.isArray(value)) {
    const items = value.map(compileJson)
    const literals = items.flatMap((item) => (item.kind === 'literal' ? [item.value] : []))
    return literals.length === items.length ? { kind: 'literal', value: literals } : { kind: 'list', items }
  }
  if (isJsonObject(value)) {
    const entries = Object.entries(value).map(([key, item]) => [key, compileJson(item)] as const)
    const literals = entries.flatMap(([key, item]) => (item.kind === 'literal' ? [[key, item.value] as const] : []))
    return literals.length === entries.length
      ? { kind: 'literal', value: Object.fromEntries(literals) }
      : { kind: 'object', entries }
  }
  return { kind: 'literal', value }
}

/**
 * The value of a template, for an entry of a query, header map or body.
 *
 * `undefined` when the template is one placeholder that resolves to nothing: the entry is then left out.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED when a placeholder inside a longer text resolves to nothing, or a cast fails
 */
export function renderValue(template: TextTemplate, scope: TemplateScope): Json | undefined {
  switch (template.kind) {
    case 'constant':
      return template.text
    case 'value':
      return resolvePlaceholder(template.placeholder, scope)
    case 'text':
      return renderParts(template.parts, scope, identity)
  }
}

/** The text of a template that must have a value. @throws Failure PLACEHOLDER_UNRESOLVED */
export function renderText(template: TextTemplate, scope: TemplateScope, encode: Encode = identity): string {
  switch (template.kind) {
    case 'constant':
      return template.text
    case 'value':
      return renderParts([template.placeholder], scope, encode)
    case 'text':
      return renderParts(template.parts, scope, encode)
  }
}

/** Renders a JSON template; object entries and list items whose placeholder resolves to nothing are left out. */
export function renderJson(template: JsonTemplate, scope: TemplateScope): Json | undefined {
  switch (template.kind) {
    case 'literal':
      return template.value
    case 'string':
      return renderValue(template.template, scope)
    case 'list':
      return template.items.map((item) => renderJson(item, scope)).filter((item) => item !== undefined)
    case 'object': {
      const rendered: Record<string, Json> = {}
      for (const [key, item] of template.entries) {
        const value = renderJson(item, scope)
        if (value !== undefined) rendered[key] = value
      }
      return rendered
    }
  }
}

/** Like `renderJson` for a template that is an object; anything else renders to `{}`. */
export function renderObject(template: JsonTemplate, scope: TemplateScope): JsonObject {
  const value = renderJson(template, scope)
  return isJsonObject(value) ? value : {}
}

/** Every path in the placeholders of a JSON value. */
export function listPlaceholderPaths(value: Json): readonly PlaceholderPath[] {
  return listPlaceholders(value).flatMap(({ paths }) => paths)
}

/** Every placeholder of a JSON value. */
export function listPlaceholders(value: Json): readonly Placeholder[] {
  if (typeof value === 'string') {
    const lexed = value.includes('{{') ? lexTemplate(value) : undefined
    if (lexed?.kind !== 'parts') return []
    return lexed.parts.flatMap((part) => (typeof part === 'string' ? [] : part))
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(listPlaceholders)
}

function renderParts(parts: readonly TemplatePart[], scope: TemplateScope, encode: Encode): string {
  let text = ''
  for (const part of parts) text += typeof part === 'string' ? part : encode(placeholderText(part, scope), part)
  return text
}

/** The placeholder's value as text: scalars as JSON writes them without quotes, objects and lists as JSON. */
function placeholderText(placeholder: Placeholder, scope: TemplateScope): string {
  const value = resolvePlaceholder(placeholder, scope)
  if (value === undefined || value === null) throw unresolvedPlaceholder(placeholder, 'has no value')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The first alternative with a value, else the default, else `null` when one was null, else `undefined`. */
function resolvePlaceholder(placeholder: Placeholder, scope: TemplateScope): Json | undefined {
  let found: Json | undefined
  for (const path of placeholder.paths) {
    const value = resolvePath(scope, path)
    if (value === undefined) continue
    found = value
    if (value !== null) break
  }
  const value =
    (found ?? undefined) === undefined && placeholder.defaultText !== undefined ? placeholder.defaultText : found
  if (value === undefined || value === null || placeholder.cast === undefined) return value
  return castValue(value, placeholder.cast, placeholder)
}

function castValue(value: Json, cast: Cast, placeholder: Placeholder): Json {
  switch (cast) {
    case 'str':
    case 'path':
      return typeof value === 'string' ? value : JSON.stringify(value)
    case 'bool':
      return castBoolean(toDouble(value), placeholder)
    case 'int':
    case 'num':
      return castNumber(value, cast, placeholder)
    case 'json':
      return typeof value === 'string' ? castJson(value, placeholder) : value
    case 'date':
      return formatDate(castDate(value, placeholder), placeholder.dateFormat ?? DATE_FORMAT_DEFAULT)
    case 'epoch':
      return Math.floor(castDate(value, placeholder) / 1_000)
    case 'epoch_ms':
      return castDate(value, placeholder)
  }
}

function castBoolean(value: Json, placeholder: Placeholder): boolean {
  if (value === true || value === 'true' || value === 1 || value === '1') return true
  if (value === false || value === 'false' || value === 0 || value === '0') return false
  throw unresolvedPlaceholder(placeholder, 'is not a boolean')
}

const ISO_DATE = /^\d{4}-\d{2}-\d{2}/

/** Epoch milliseconds of an ISO 8601 date. */
function castDate(value: Json, placeholder: Placeholder): number {
  const moment = typeof value === 'string' && ISO_DATE.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(moment)) throw unresolvedPlaceholder(placeholder, 'is not a date')
  return moment
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i

/** A text that is a JSON number keeps its digits, of any size; `+1`, `.5` and `1.` become doubles. */
function castNumber(value: Json, cast: 'int' | 'num', placeholder: Placeholder): number | JsonNumber {
  const number = typeof value === 'string' ? numberFrom(value.trim()) : value
  if (!isJsonNumber(number) || !(number instanceof JsonNumber || Number.isFinite(number)))
    throw unresolvedPlaceholder(placeholder, 'is not a number')
  if (cast === 'int' && decimalForm(number).exponent < 0) throw unresolvedPlaceholder(placeholder, 'is not an integer')
  return number
}

function numberFrom(text: string): Json {
  if (JSON_NUMBER.test(text)) return jsonNumberOf(text)
  return NUMBER.test(text) ? Number(text) : text
}

function castJson(text: string, placeholder: Placeholder): Json {
  try {
    return parseJson(text)
  } catch {
    throw unresolvedPlaceholder(placeholder, 'is not JSON')
  }
}

/** Error of one placeholder. The message never holds the value: it may be a secret. */
export function unresolvedPlaceholder(placeholder: Placeholder, problem: string): Failure {
  return new Failure('PLACEHOLDER_UNRESOLVED', `the placeholder {{${placeholder.source}}} ${problem}`, {
    metadata: { placeholder: placeholder.source },
  })
}

const identity: Encode = (text) => text
