/**
 * `response_format`: how responses are decoded. The registry of its formats.
 *
 * @module
 */
import { z } from 'zod'
import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { csv, tsv } from './csv.ts'
import { binary, json, ndjson, type ResponseFormat, text } from './response.ts'
import { xml } from './xml.ts'

export const RESPONSE_FORMATS: readonly ResponseFormat[] = [json, ndjson, text, binary, xml, csv, tsv]

const NO_SETTINGS = z.strictObject({})

/** The name of a response format, or `{format, config}`. */
export const responseFormatSchema = z.union([
  z.enum(RESPONSE_FORMATS.map((entry) => entry.format)),
  formatUnion(
    'ResponseFormat',
    RESPONSE_FORMATS.map((entry) => ({ ...entry, config: (entry.config ?? NO_SETTINGS).optional() })),
  ),
])

/** The format of that name, with the settings of the choice. */
export function responseFormat(choice: string | FormatChoice): ResponseFormat {
  if (typeof choice === 'string') return getFormat(RESPONSE_FORMATS, choice)
  const format = getFormat(RESPONSE_FORMATS, choice.format)
  return choice.config === undefined ? format : (format.configure?.(choice.config) ?? format)
}
