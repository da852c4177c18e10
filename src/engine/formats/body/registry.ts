/**
 * `body_format`: how request bodies are encoded. The registry of its formats.
 *
 * @module
 */
import { z } from 'zod'
import { getFormat } from '../format.ts'
import { type BodyFormat, form, json, raw } from './body.ts'
import { multipart } from './multipart.ts'
import { xml } from './xml.ts'

export const BODY_FORMATS: readonly BodyFormat[] = [json, form, multipart, raw, xml]

/** The name of a body format. */
export const bodyFormatSchema = z.enum(BODY_FORMATS.map((entry) => entry.format))

/** The format of that name. */
export function bodyFormat(name: string): BodyFormat {
  return getFormat(BODY_FORMATS, name)
}
