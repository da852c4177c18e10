import { decodeText } from './charset.ts'
import type { ResponseFormat } from './response.ts'

/** `text`: the body as one string. */
export const text: ResponseFormat = {
  format: 'text',
  summary: 'The body as one text, in the charset of the content type, UTF-8 where it names none.',
  accept: '*/*',
  isCheap: true,
  decode: decodeText,
}
