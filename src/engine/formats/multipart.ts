import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import { FORM_FIELDS_MAX } from '../../foundation/base/index.ts'
import { yieldToEventLoop } from '../../foundation/fair/index.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { formFields } from './form.ts'
import { decodeText } from './response/charset.ts'

/** A part as it came. */
interface MultipartPart {
  readonly name: string
  /** Absent: a field. */
  readonly filename: string | undefined
  readonly contentType: string
  readonly bytes: Buffer
}

/**
 * Reads `multipart/form-data` (RFC 7578): a field is its text, a file `{filename, content_type, size}`, parts with one name a list.
 * The charset of the fields is the one that `_charset_` names (§4.6), or that SendGrid names for each in `charsets`, else UTF-8.
 *
 * @throws CharsetError; another Error when the body is not whole, or has too many parts. The message begins with a verb
 */
export async function readMultipart(body: Uint8Array, contentType: string): Promise<JsonObject> {
  const parts = await splitParts(body, contentType)
  const charsetOfField = charsetsOf(parts)
  return formFields(parts.map((part) => [part.name, partValue(part, charsetOfField(part.name))]))
}

function partValue({ filename, contentType, bytes }: MultipartPart, charset: string | undefined): Json {
  if (filename === undefined) return decodeText(bytes, charset)
  return { filename, content_type: contentType, size: bytes.byteLength }
}

function charsetsOf(parts: readonly MultipartPart[]): (name: string) => string | undefined {
  const textOf = (name: string) =>
    parts.find((part) => part.name === name && part.filename === undefined)?.bytes.toString('latin1')
  const common = textOf('_charset_')
  const each = readObject(textOf('charsets'))
  return (name) => {
    const own = Object.hasOwn(each, name) ? each[name] : undefined
    return typeof own === 'string' ? own : common
  }
}

function readObject(text = ''): JsonObject {
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** A turn of the event loop reads so many bytes. */
const SLICE_BYTES = 16 * 1024

async function writeInSlices(parser: InstanceType<typeof Busboy>, body: Uint8Array): Promise<void> {
  for (let at = 0; at < body.byteLength; at += SLICE_BYTES) {
    parser.write(Buffer.from(body.subarray(at, at + SLICE_BYTES)))
    await yieldToEventLoop()
  }
  parser.end()
}

function splitParts(body: Uint8Array, contentType: string): Promise<readonly MultipartPart[]> {
  return new Promise((resolve, reject) => {
    const parts: MultipartPart[] = []
    const fail = (error: unknown) => reject(new Error('is not valid multipart/form-data', { cause: error }))
    try {
      const parser = new Busboy({
        headers: { 'content-type': contentType },
        // Fields are decoded here: the parser replaces what is not in its charset.
        isPartAFile: () => true,
        limits: { parts: FORM_FIELDS_MAX, fileSize: Number.POSITIVE_INFINITY },
      })
      parser.on(
        'file',
        (name: string, stream: BusboyFileStream, filename: string | undefined, _encoding: string, type: string) => {
          const chunks: Buffer[] = []
          stream.on('data', (chunk: Buffer) => chunks.push(chunk))
          stream.on('error', fail)
          stream.on('end', () => parts.push({ name, filename, contentType: type, bytes: Buffer.concat(chunks) }))
        },
      )
      parser.on('partsLimit', () => reject(new Error(`has more than ${FORM_FIELDS_MAX} parts`)))
      parser.on('error', fail)
      parser.on('finish', () => resolve(parts))
      void writeInSlices(parser, body).catch(fail)
    } catch (error) {
      fail(error)
    }
  })
}
