import type { DescField, DescMethod } from '@bufbuild/protobuf'

/**
 * Most bytes of the items of one page, unless one item alone is larger. With what encodings add an answer stays below 4 MiB, which
 * is what clients of gRPC accept by default.
 */
const PAGE_BYTES_MAX = 3 * 1024 * 1024
/** Tag, length and the wrappers of a value of a `google.protobuf.Struct`. */
const VALUE_BYTES = 8

/**
 * The handler of a list, of which no page is larger than PAGE_BYTES_MAX: a page that would be is read again with as many items as
 * fit, so that its token names the item after the last one.
 */
export function withBoundedPages<Request extends { pageSize: number }, Context, Answer extends object>(
  { output }: Pick<DescMethod, 'output'>,
  handler: (request: Request, context: Context) => Promise<Answer>,
): (request: Request, context: Context) => Promise<Answer> {
  const list = output.fields.find(isListOfMessages)
  if (list === undefined) return handler
  return async (request, context) => {
    const answer = await handler(request, context)
    const items: unknown = Reflect.get(answer, list.localName)
    if (!Array.isArray(items)) return answer
    const fitting = countFitting(items)
    if (fitting === items.length) return answer
    request.pageSize = fitting
    return await handler(request, context)
  }
}

function isListOfMessages({ fieldKind, message }: DescField): boolean {
  return fieldKind === 'list' && message !== undefined
}

function countFitting(items: readonly unknown[]): number {
  let left = PAGE_BYTES_MAX
  const exceeding = items.findIndex((item) => {
    left = bytesLeft(item, left)
    return left < 0
  })
  return exceeding === -1 ? items.length : Math.max(exceeding, 1)
}

/** What is left of a number of bytes after a value; negative when it is larger, and then not the exact size. */
function bytesLeft(value: unknown, bytes: number): number {
  const left = bytes - VALUE_BYTES
  if (typeof value === 'string') return left - Buffer.byteLength(value)
  if (value instanceof Uint8Array) return left - value.byteLength
  if (typeof value !== 'object' || value === null) return left
  return entriesLeft(value, left)
}

function entriesLeft(value: object, bytes: number): number {
  let left = bytes
  for (const [key, item] of Object.entries(value)) {
    left = bytesLeft(item, left - key.length)
    if (left < 0) return left
  }
  return left
}
