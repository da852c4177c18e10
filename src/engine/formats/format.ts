import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject, toDouble } from '../../foundation/json/index.ts'

/** A format: its name, its documentation and the schema of its `config`. */
export interface Format {
  /** The value of `format`. */
  readonly format: string
  /** One or two sentences for the reference page. */
  readonly summary: string
  /** Schema of `config`; an optional schema lets a definition omit it. */
  readonly config: z.ZodType
}

/** What `format` and `config` are, in every union of formats. */
export const FORMAT_DESCRIPTION = 'Name of the format.'
export const CONFIG_DESCRIPTION = 'Settings of the format.'

/** A format as a definition chooses it: `{"format": "bearer", "config": {…}}`. */
export interface FormatChoice {
  readonly format: string
  readonly config?: Json | undefined
}

/**
 * Evaluates JSONata over `input`, which is `$`, and the environment variables that the expression may read.
 *
 * @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED
 */
export type EvaluateExpression = (expression: string, input: JsonObject) => Promise<Json | undefined>

/**
 * The schema of `{format, config}`: a union discriminated by `format`, so that findings are about the chosen format.
 *
 * @param name of the type in the published JSON Schema
 */
export function formatUnion(name: string, formats: readonly Format[]): z.ZodType<FormatChoice> {
  const [first, ...rest] = formats.map(choiceSchema)
  if (first === undefined) throw new Error('a union needs at least one format')
  return z.discriminatedUnion('format', [first, ...rest]).meta({ id: name })
}

/** Binds `compile` to its schema: it receives the parsed config, with defaults. */
export function withSchema<S extends z.ZodType, R>(
  config: S,
  compile: (config: z.output<S>) => R,
): (raw: Json | undefined) => R {
  return (raw) => compile(config.parse(raw))
}

/** The format of that name. @throws Error for an unknown one, never for a checked definition */
export function getFormat<F extends { readonly format: string }>(formats: readonly F[], name: string): F {
  const found = formats.find((entry) => entry.format === name)
  if (found === undefined) throw new Error(`no format ${name} in the registry`)
  return found
}

function choiceSchema(
  entry: Format,
): z.ZodObject<{ format: z.ZodLiteral<string>; config: z.ZodType<Json | undefined> }> {
  const config = entry.config as z.ZodType<Json | undefined>
  return z
    .strictObject({
      format: z.literal(entry.format).describe(FORMAT_DESCRIPTION),
      config: config.describe(CONFIG_DESCRIPTION),
    })
    .describe(entry.summary)
}

/** Truthiness of JSONata's boolean cast: empty texts, lists and objects, and no value, are false. */
export function isTruthy(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(isTruthy)
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(toDouble(value))
}
