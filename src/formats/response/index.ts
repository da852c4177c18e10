/**
 * `response_format`: how responses are decoded. The registry of its formats.
 *
 * @module
 */
import { z } from 'zod'
import { getFormat } from '../format.ts'
import { csv } from './csv.ts'
import { binary, json, ndjson, type ResponseFormat, text } from './response.ts'
import { xml } from './xml.ts'

export const RESPONSE_FORMATS: readonly ResponseFormat[] = [json, ndjson, text, binary, xml, csv]

/** The name of a response format. */
export const responseFormatSchema = z.enum(RESPONSE_FORMATS.map((entry) => entry.format))

/** The format of that name. */
export function responseFormat(name: string): ResponseFormat {
  return getFormat(RESPONSE_FORMATS, name)
}
