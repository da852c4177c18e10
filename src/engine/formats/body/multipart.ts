import { Failure } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { BodyFormat } from './body.ts'

/**
 * `multipart`: `multipart/form-data` (RFC 7578). A field whose value is `{filename, content, content_type?, encoding?}` is
 * a file; `encoding: "base64"` marks binary content. Lists repeat the field, other objects are JSON parts.
 */
export const multipart: BodyFormat = {
  format: 'multipart',
  summary:
    'Form fields and files (`multipart/form-data`); a file is `{filename, content, content_type?, encoding?: "base64"}`.',
  encode: (value, { nonce }) => {
    if (!isJsonObject(value)) throw new Failure('INVALID_FIELD', 'a multipart body must be an object of fields')
    const boundary = `patchbay-${nonce()}`
    const parts = Object.entries(value).flatMap(([name, item]) =>
      (Array.isArray(item) ? item : [item]).map((single: Json) => writePart(boundary, name, single)),
    )
    const content = Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])
    return { content, contentType: `multipart/form-data; boundary=${boundary}` }
  },
}

function writePart(boundary: string, name: string, value: Json): Buffer {
  const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"`
  if (isJsonObject(value) && typeof value.filename === 'string' && typeof value.content === 'string')
    return writeFile(disposition, value.filename, value.content, value)
  const isJson = isJsonObject(value) || Array.isArray(value)
  const type = isJson ? '\r\nContent-Type: application/json' : ''
  return Buffer.from(`${disposition}${type}\r\n\r\n${typeof value === 'string' ? value : JSON.stringify(value)}\r\n`)
}

function writeFile(disposition: string, filename: string, content: string, file: JsonObject): Buffer {
  const type = typeof file.content_type === 'string' ? file.content_type : 'application/octet-stream'
  const head = `${disposition}; filename="${quote(filename)}"\r\nContent-Type: ${type.replace(/[\r\n]/g, '')}\r\n\r\n`
  const bytes = Buffer.from(content, file.encoding === 'base64' ? 'base64' : 'utf8')
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n')])
}

/** As browsers do (WHATWG HTML, multipart form data): quotes and line breaks are percent-encoded. */
function quote(text: string): string {
  return text.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22')
}
